"""`python -m eventhub_checkpoints.cli.demo.consumer`: a user's consumer, with our store.

It takes hub and store from EVENTHUB_CONNECTION_STRING and CHECKPOINT_STORE, notes what it
processes, and saves a checkpoint every few events. SIGTERM or Ctrl-C ends it in order: what it
has processed is saved and its partitions are released.
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
"""Events of one partition from checkpoint to checkpoint."""

BALANCING: dict[str, Any] = {
    "load_balancing_interval": 0.5,
    "partition_ownership_expiration_interval": 4,
}
"""Seconds. Short, so that a dead consumer is missed soon; not shorter, for Blob storage tells time
in whole seconds."""

KEEP_UNCONFIRMED = 2.0
"""Seconds; must be below the expiry above."""


class Progress:
    """What was processed and what is not saved yet, by partition; the same for both colours."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._unsaved: dict[str, list[Any]] = {}

    def took(self, partition: str) -> None:
        """The client has begun with a partition."""
        # The sync client may hand over events before it says that it has begun.
        self._unsaved.setdefault(partition, [])
        self._journal.took(partition)

    def processed(self, partition: str, events: list[Any]) -> None:
        """These events are done. Here a program would do its work."""
        self._journal.processed(partition, [event.sequence_number for event in events])
        self._unsaved.setdefault(partition, []).extend(events)

    def due(self, partition: str) -> Any | None:
        """The event to save, if it is time."""
        unsaved = self._unsaved[partition]
        return unsaved[-1] if len(unsaved) >= SAVE_EVERY else None

    def saved(self, partition: str, event: Any) -> None:
        """The checkpoint of this event is stored."""
        self._unsaved[partition] = []
        self._journal.saved(partition, event.sequence_number)

    def left(self, partition: str) -> Any | None:
        """The client is through with a partition; the last event that nobody has saved."""
        self._journal.left(partition)
        # Not the last one received: that one may have been cancelled on its way to the work.
        unsaved = self._unsaved.pop(partition, None)
        return unsaved[-1] if unsaved else None


def main(arguments: list[str] | None = None) -> int:
    """Consume until told to stop; return the exit status."""
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
