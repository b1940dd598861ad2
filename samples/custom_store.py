"""A consumer with a custom store: a directory of JSON files.

    EVENTHUB_CONNECTION_STRING=... python samples/custom_store.py [DIRECTORY]

`docs/how-to/custom-store.md` explains the store. It runs until Ctrl-C. Run it twice: the second run
continues where the first one stopped. The directory is created if it is missing. Without Azure:
`ehcp demo --keep` fills a local hub, prints the variable and keeps the hub running.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import quote

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints.base import (
    ABSENT,
    FORCE,
    UNKNOWN,
    BaseCheckpointStore,
    Checkpoint,
    Conflict,
    Listing,
    Lost,
    Ownership,
    Proposal,
    Scope,
    Seen,
    StoreSettings,
    Won,
    Written,
    seconds_left,
)


class JsonCheckpointStore(BaseCheckpointStore):
    """Keeps records as JSON files, for consumers that share a POSIX file system."""

    def __init__(self, directory: str | Path, **settings: Unpack[StoreSettings]) -> None:
        super().__init__(**settings)
        self._directory = Path(directory)

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        rows = self._rows(scope, "ownership")
        return Listing([Ownership(scope, **row) for row in rows])

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        with self._locked(proposal, "ownership") as path:
            stored = load(path)
            if stored and stored["etag"] != proposal.etag:
                return Lost(Ownership(proposal.scope, **stored))
            won = proposal.won(time.time())
            save(path, won, ["partition_id", "owner_id", "etag", "last_modified_time"])
            return Won(won)

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        rows = self._rows(scope, "checkpoint")
        return Listing([Checkpoint(scope, **row) for row in rows])

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        with self._locked(checkpoint, "checkpoint") as path:
            stored = load(path)
            version = stored["version"] if stored else ABSENT
            if seen is not FORCE and version != (ABSENT if seen is UNKNOWN else seen):
                scope = checkpoint.scope
                return Conflict(Checkpoint(scope, **stored) if stored else None)
            fields = ["partition_id", "offset", "sequence_number", "version"]
            save(path, checkpoint, fields)
            return Written(checkpoint.version)

    def _folder(self, scope: Scope, kind: str) -> Path:
        names = [quote(name, safe="") for name in scope.folded.as_dict().values()]
        return self._directory.joinpath(*names, kind)

    def _rows(self, scope: Scope, kind: str) -> list[dict[str, Any]]:
        paths = self._folder(scope, kind).glob("*.json")
        return [row for path in paths if (row := load(path))]

    @contextmanager
    def _locked(self, record: Proposal | Checkpoint, kind: str) -> Generator[Path]:
        name = quote(record.partition_id, safe="") + ".json"
        path = self._folder(record.scope, kind) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if not seconds_left():
                    raise TimeoutError(f"{path} is locked by another process")
                time.sleep(0.01)
            yield path


def load(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_text())) if path.exists() else None


def save(path: Path, record: Ownership | Checkpoint, fields: list[str]) -> None:
    text = json.dumps({field: getattr(record, field) for field in fields})
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text)
    unfinished.replace(path)


def main() -> None:
    store = JsonCheckpointStore(sys.argv[1] if len(sys.argv) > 1 else "checkpoints")
    connection_string = os.environ["EVENTHUB_CONNECTION_STRING"]
    client = EventHubConsumerClient.from_connection_string(
        connection_string, consumer_group="$Default", checkpoint_store=store
    )

    def on_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: {first} to {last}")

    with ThreadPoolExecutor(1) as thread, client:
        received = thread.submit(client.receive_batch, on_batch, starting_position="-1")
        with suppress(KeyboardInterrupt):  # in the main thread, so no handler is interrupted
            received.result()


if __name__ == "__main__":
    main()
