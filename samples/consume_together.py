"""Three processes share a hub; a bar shows which of them reads what.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

    python samples/consume_together.py [PROCESSES]

needs the package eventhub-checkpoints[arrow,sql]. One process starts after the other, and each asks
the others for its share; a line is printed when a partition changes hands. Ctrl-C ends them all.
Without Azure: `python -m eventhub_checkpoints.localhub --hub orders=8 --events 5000` prints the
connection string of a local hub with events, and keeps it running.
"""

import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from queue import Empty
from typing import Any

from eventhub_checkpoints import open_store
from eventhub_checkpoints.arrow import consume_batches

BETWEEN = 2.0
"""Seconds between the starts of two processes."""


def consume(name: str, changes: Any) -> None:
    """Be a member of the group, and tell which partitions come and go."""
    with (
        open_store(os.environ["CHECKPOINT_STORE"]) as store,
        consume_batches(
            os.environ["EVENTHUB_CONNECTION_STRING"],
            store=store,
            load_balancing_interval=1,  # a quick show; the default spares the store
            on_assigned=lambda partition: changes.put((name, partition, True)),
            on_lost=lambda partition: changes.put((name, partition, False)),
        ) as batches,
    ):
        for _ in batches:  # until SIGTERM
            batches.commit()


def bar(owners: dict[str, str]) -> str:
    """Return a letter for each partition: its owner."""
    return " ".join(owners[partition] for partition in sorted(owners, key=int))


def main(count: int) -> None:
    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
    context = multiprocessing.get_context("spawn")
    changes = context.Queue()
    names = [chr(ord("A") + number) for number in range(count)]
    processes = [
        context.Process(target=consume, args=(name, changes), daemon=True) for name in names
    ]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    owners: dict[str, str] = {}
    starts = time.monotonic()
    waiting = [*processes]
    try:
        while True:
            if waiting and time.monotonic() >= starts:
                waiting.pop(0).start()
                starts = time.monotonic() + BETWEEN
            with suppress(Empty):
                name, partition, is_assigned = changes.get(timeout=0.2)
                if is_assigned:
                    owners[partition] = name
                    print(bar(owners), flush=True)
    except KeyboardInterrupt:
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
