"""`python -m eventhub_checkpoints.cli.demo.consumer`: a user's consumer with this store.

It reads hub and store from EVENTHUB_CONNECTION_STRING and CHECKPOINT_STORE, logs the processed
events, and saves a checkpoint every few events. SIGTERM or Ctrl-C shuts it down cleanly: the
processed events are saved and its partitions are released.
"""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from eventhub_checkpoints.cli.demo.journal import JournalWriter
from eventhub_checkpoints.cli.demo.place import Place
from eventhub_checkpoints.errors import CheckpointStoreError

SAVE_EVERY = 20
"""Number of events of one partition between two checkpoints."""

BALANCING: dict[str, Any] = {
    "load_balancing_interval": 0.5,
    "partition_ownership_expiration_interval": 4,
}
"""Seconds. Short, so that a dead consumer is detected soon; not shorter, because Blob storage has
times in whole seconds."""

KEEP_UNCONFIRMED = 2.0
"""Seconds; must be below the expiry above."""


class Progress:
    """Processed and unsaved events by partition; the same for both clients."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._unsaved: dict[str, list[Any]] = {}

    def took(self, partition: str) -> None:
        """Record that the client has started a partition."""
        # The sync client may pass events before it reports the start of a partition.
        self._unsaved.setdefault(partition, [])
        self._journal.took(partition)

    def processed(self, partition: str, events: list[Any]) -> None:
        """Record processed events. A real program would do its work here."""
        self._journal.processed(partition, [event.sequence_number for event in events])
        self._unsaved.setdefault(partition, []).extend(events)

    def due(self, partition: str) -> Any | None:
        """Return the event to save, if a checkpoint is due."""
        unsaved = self._unsaved[partition]
        return unsaved[-1] if len(unsaved) >= SAVE_EVERY else None

    def saved(self, partition: str, event: Any) -> None:
        """Record that the checkpoint of this event is stored."""
        self._unsaved[partition] = []
        self._journal.saved(partition, event.sequence_number)

    def left(self, partition: str) -> Any | None:
        """Record that the client has closed a partition; return the last unsaved event."""
        self._journal.left(partition)
        # Not the last received event: its processing may have been cancelled.
        unsaved = self._unsaved.pop(partition, None)
        return unsaved[-1] if unsaved else None


def main(arguments: list[str] | None = None) -> int:
    """Consume until stopped; return the exit status."""
    parser = argparse.ArgumentParser(description="Consume a hub with checkpoints in a store.")
    parser.add_argument("--consumer", choices=("aio", "sync"), default="aio")
    parser.add_argument("--journal", type=Path, help="file for what is done; default: the screen")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    progress = Progress(JournalWriter(options.journal))
    try:
        if options.consumer == "aio":
            from eventhub_checkpoints.cli.demo.consumer_aio import consume
        else:
            from eventhub_checkpoints.cli.demo.consumer_sync import consume
        consume(Place.from_environment(), progress)
    except CheckpointStoreError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
