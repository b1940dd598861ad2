"""Commands of `ehcp` as a test runs them, and consumers that run meanwhile."""

import asyncio
import json
import logging
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient
from typer.testing import CliRunner, Result

from eventhub_checkpoints import Checkpointer, CoalescingCheckpointStore, every
from eventhub_checkpoints.aio import Checkpointer as AioCheckpointer
from eventhub_checkpoints.aio import CoalescingCheckpointStore as AioCoalescingCheckpointStore
from eventhub_checkpoints.cli import main
from eventhub_checkpoints.cli.app import app
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.records import stored_offset
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT

INTERVAL = 0.4
"""Seconds between two rounds of load balancing of a consumer."""

Saving = Literal["directly", "checkpointer", "coalescing"]


def ehcp(*words: str) -> Result:
    """Run a command; an exception other than one of this package is raised."""
    result = CliRunner().invoke(app, [*words])
    error = result.exception
    if isinstance(error, Exception) and not isinstance(error, CheckpointStoreError):
        raise error
    return result


def ehcp_json(*words: str) -> Any:
    """Run a command that must succeed, and return its JSON."""
    result = ehcp(*words, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


@contextmanager
def quiet_client() -> Iterator[None]:
    """Restore the level of the client's logger, which the entry point raises."""
    azure = logging.getLogger("azure")
    level = azure.level
    yield
    azure.setLevel(level)


def ended(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run the entry point; return its exit status, and the sentence that the interpreter prints."""
    monkeypatch.setattr(sys, "argv", ["ehcp", *words])
    with pytest.raises(SystemExit) as ending:
        main()
    code = ending.value.code
    return (1, f"{code}\n") if isinstance(code, str) else (int(code or 0), "")


class Seen:
    """Events that consumers have received, by partition, in the order of arrival."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = defaultdict(list)

    def add(self, context: Any, event: Any) -> None:
        """Record an event."""
        self.numbers[context.partition_id].append(event.sequence_number)

    def times(self, partition_id: str, number: int) -> int:
        """Return how often an event was received."""
        return list(self.numbers[partition_id]).count(number)


class Consumer:
    """Running client that checkpoints every event; `close` ends it.

    Args:
        connection_string: of the hub.
        store: checkpoint store of the variant.
        seen: records the events.
        loop: for the aio variant.
        is_aio: the variant.
        saving: how it checkpoints each event: in its handler, through a `Checkpointer`, or in its
            handler with a store that writes only when it is told to.
        group: the consumer group.
        start: where partitions without a checkpoint start.
    """

    def __init__(
        self,
        connection_string: str,
        store: Any,
        seen: Seen,
        loop: Loop,
        *,
        is_aio: bool,
        saving: Saving = "directly",
        group: str = "$Default",
        start: str = "-1",
    ) -> None:
        self._start_at = start
        self._loop, self._is_aio, self._seen = loop, is_aio, seen
        self._stores = [store]
        self._checkpointer: Any = None
        if saving == "checkpointer":
            self._checkpointer = (AioCheckpointer if is_aio else Checkpointer)(
                store, every(events=1), drain_timeout=0.5
            )
        elif saving == "coalescing":
            coalescing = AioCoalescingCheckpointStore if is_aio else CoalescingCheckpointStore
            store = coalescing(store, every(events=10**6))
            self._stores.insert(0, store)
        self._arguments = {
            "conn_str": connection_string,
            "consumer_group": group,
            "checkpoint_store": store,
            "load_balancing_interval": INTERVAL,
            "partition_ownership_expiration_interval": 60.0,
            "socket_timeout": 0.02,
        }
        if is_aio:
            loop.finished(self._start())
        else:
            self._client: Any = EventHubConsumerClient.from_connection_string(**self._arguments)
            self._thread = threading.Thread(target=self._receive)
            self._thread.start()

    @property
    def _handlers(self) -> dict[str, Any]:
        return {} if self._checkpointer is None else dict(self._checkpointer.handlers)

    def _receive(self) -> None:
        self._client.receive(self._on_event, starting_position=self._start_at, **self._handlers)

    def _on_event(self, context: Any, event: Any) -> None:
        if self._checkpointer is not None:
            with self._checkpointer.track(context, event):
                self._seen.add(context, event)
        else:
            self._seen.add(context, event)
            context.update_checkpoint(event)

    async def _start(self) -> None:
        self._client = AioEventHubConsumerClient.from_connection_string(**self._arguments)
        self._task = asyncio.create_task(
            self._client.receive(
                self._on_event_async, starting_position=self._start_at, **self._handlers
            )
        )

    async def _on_event_async(self, context: Any, event: Any) -> None:
        if self._checkpointer is not None:
            async with self._checkpointer.track(context, event):
                self._seen.add(context, event)
        else:
            self._seen.add(context, event)
            await context.update_checkpoint(event)

    async def _end(self) -> None:
        await self._client.close()
        self._task.cancel()  # or it would go on until its load balancing has slept
        with suppress(asyncio.CancelledError):
            await self._task
        if self._checkpointer is not None:
            await self._checkpointer.close()
        for store in self._stores:
            await store.close()

    def close(self) -> None:
        """Close client, checkpointer and store."""
        if self._is_aio:
            self._loop.finished(self._end())
            return
        self._client.close()
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        if self._checkpointer is not None:
            self._checkpointer.close()
        for store in self._stores:
            store.close()


class Site:
    """A local hub and a SQLite store that the environment names to the commands.

    Partition 0 of the group has read 16 of 20 events, partition 1 has lost events 5 to 9, partition
    2 has read all, and partition 3 was never used.
    """

    def __init__(self, hub: LocalHub, store: Any, url: str) -> None:
        self.hub, self.store, self.url = hub, store, url
        self.connection_string = hub.connection_string("orders")
        self.scope = HubAddress.from_connection_string(self.connection_string).scope()
        for partition_id in ("0", "1", "2"):
            hub.publish("orders", partition_id, [b"event"] * 20)
        hub.trim("orders", "1", 10)
        for partition_id, number in {"0": 15, "1": 4, "2": 19}.items():
            self.save(partition_id, number)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Site"]:
        """Start the hub and open the store, and name them and the folder of records."""
        url = f"sqlite:///{folder}/checkpoints.db"
        for name in [name for name in os.environ if name.startswith("EHCP_")]:
            monkeypatch.delenv(name)
        with LocalHub({"orders": 4}) as hub, SqlCheckpointStore(url, create_tables=True) as store:
            monkeypatch.setenv("EHCP_STORE", url)
            monkeypatch.setenv("EHCP_HUB", hub.connection_string("orders"))
            monkeypatch.setenv("EHCP_STATE_DIR", str(folder / "state"))
            yield cls(hub, store, url)

    def offset(self, number: int) -> str:
        """Return the offset of an event, all of which are equally long."""
        last = self.hub.partition_properties("orders", "0").last_offset
        return str(int(last) // 19 * number)

    def save(self, partition_id: str, number: int, group: str | None = None) -> None:
        """Store a checkpoint."""
        scope = self.scope if group is None else self.scope._replace(consumer_group=group)
        row = {"partition_id": partition_id, "sequence_number": number}
        offset = self.offset(number)
        self.store.update_checkpoint({**scope.as_dict(), **row, "offset": offset}, force=True)

    def own(self, *partition_ids: str) -> None:
        """Let a consumer own partitions."""
        rows = [
            {**self.scope.as_dict(), "partition_id": id_, "owner_id": "consumer-7"}
            for id_ in partition_ids
        ]
        assert len(self.store.claim_ownership(rows)) == len(rows)

    def owners(self) -> dict[str, str]:
        """Return the owner of each partition that has a row."""
        rows = self.store.list_ownership(*self.scope)
        return {row["partition_id"]: row["owner_id"] for row in rows}

    def rows(self, group: str | None = None) -> dict[str, tuple[int, str]]:
        """Return the positions as they are stored, read by another store."""
        scope = self.scope if group is None else self.scope._replace(consumer_group=group)
        with SqlCheckpointStore(self.url) as store:
            rows = store.list_checkpoints(*scope)
        return {
            row["partition_id"]: (row["sequence_number"], stored_offset(row["offset"]))
            for row in rows
        }
