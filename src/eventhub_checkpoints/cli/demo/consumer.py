"""`python -m eventhub_checkpoints.cli.demo.consumer`: an example consumer with a store.

The environment variables EVENTHUB_CONNECTION_STRING and CHECKPOINT_STORE name the hub and the
store. The consumer writes the processed events to a journal, and saves a checkpoint every few
events. SIGTERM or Ctrl-C shuts it down cleanly: it saves a checkpoint of the processed events and
releases its partitions.
"""

import argparse
import asyncio
import logging
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from azure.eventhub import CloseReason, EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints._shared.signals import STOP_SIGNALS, on_stop_signals
from eventhub_checkpoints.cli.demo import programs
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP

SAVE_EVERY = 20
"""Number of events of one partition between two checkpoints."""

BALANCING: dict[str, Any] = {
    "load_balancing_interval": 0.5,
    "partition_ownership_expiration_interval": 4,
}
"""Seconds. Short, so that a dead consumer is detected soon; not shorter, because Blob storage has
times in whole seconds."""

KEEP_UNCONFIRMED = 2.0
"""Seconds; must be less than `partition_ownership_expiration_interval` above."""

SOCKET_TIMEOUT = 0.05
"""Seconds. The sync client waits this long on every idle partition in turn."""

RECEIVING: dict[str, Any] = {"max_batch_size": 100, "starting_position": "-1"}


class Progress:
    """Processed and unsaved events by partition; the same for both clients."""

    def __init__(self, journal: programs.JournalWriter) -> None:
        self._journal = journal
        self._unsaved: dict[str, list[Any]] = {}

    def took(self, partition: str) -> None:
        """Record that the client has started a partition."""
        # The sync client may pass events before it reports the start of a partition.
        self._unsaved.setdefault(partition, [])
        self._journal.took(partition)

    def processed(self, partition: str, events: list[Any]) -> Any | None:
        """Record processed events; return the event to save, if a checkpoint is due.

        A real program would do its work here.
        """
        self._journal.processed(partition, [event.sequence_number for event in events])
        unsaved = self._unsaved.setdefault(partition, [])
        unsaved.extend(events)
        return unsaved[-1] if len(unsaved) >= SAVE_EVERY else None

    def saved(self, partition: str, event: Any) -> None:
        """Record that the checkpoint of this event is stored."""
        self._unsaved[partition] = []
        self._journal.saved(partition, event.sequence_number)

    def left(self, partition: str, reason: CloseReason) -> Any | None:
        """Record that the client has closed a partition; return the event to save, if any."""
        self._journal.left(partition)
        # Not the last received event: its processing may have been cancelled.
        unsaved = self._unsaved.pop(partition, None)
        # If the partition was lost, its new owner saves the checkpoints.
        return unsaved[-1] if unsaved and reason is CloseReason.SHUTDOWN else None


async def consume_aio(addresses: programs.Addresses, progress: Progress) -> None:
    """Consume with the aio client until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def on_initialize(context: Any) -> None:
        progress.took(context.partition_id)

    async def on_batch(context: Any, events: list[Any]) -> None:
        await save(context, progress.processed(context.partition_id, events))

    async def on_close(context: Any, reason: CloseReason) -> None:
        await save(context, progress.left(context.partition_id, reason))

    async def save(context: Any, event: Any | None) -> None:
        if event is not None:
            await context.update_checkpoint(event)
            progress.saved(context.partition_id, event)

    async with aio.open_store(addresses.store_url, keep_unconfirmed=KEEP_UNCONFIRMED) as store:
        client = AioEventHubConsumerClient.from_connection_string(
            addresses.connection_string,
            DEFAULT_CONSUMER_GROUP,
            checkpoint_store=store,
            **BALANCING,
        )
        async with client:
            receiving = asyncio.create_task(
                client.receive_batch(
                    on_batch,
                    on_partition_initialize=on_initialize,
                    on_partition_close=on_close,
                    **RECEIVING,
                )
            )
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([receiving, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await client.close()
            # After `close`, `receive_batch` only sleeps until its next load balancing.
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving


def consume_sync(addresses: programs.Addresses, progress: Progress) -> None:
    """Consume with the sync client until SIGTERM or SIGINT."""
    stop = threading.Event()

    def on_initialize(context: Any) -> None:
        progress.took(context.partition_id)

    def on_batch(context: Any, events: list[Any]) -> None:
        save(context, progress.processed(context.partition_id, events))

    def on_close(context: Any, reason: CloseReason) -> None:
        save(context, progress.left(context.partition_id, reason))

    def save(context: Any, event: Any | None) -> None:
        if event is not None:
            context.update_checkpoint(event)
            progress.saved(context.partition_id, event)

    with (
        on_stop_signals(stop.set),
        open_store(addresses.store_url, keep_unconfirmed=KEEP_UNCONFIRMED) as store,
    ):
        client = EventHubConsumerClient.from_connection_string(
            addresses.connection_string,
            DEFAULT_CONSUMER_GROUP,
            checkpoint_store=store,
            socket_timeout=SOCKET_TIMEOUT,
            **BALANCING,
        )

        def receive() -> None:
            try:
                client.receive_batch(
                    on_batch,
                    on_partition_initialize=on_initialize,
                    on_partition_close=on_close,
                    **RECEIVING,
                )
            finally:
                stop.set()

        receiving = threading.Thread(target=receive)
        receiving.start()
        stop.wait()
        client.close()
        receiving.join()


def main(arguments: list[str] | None = None) -> int:
    """Consume until stopped; return the exit status."""
    parser = argparse.ArgumentParser(description="Consume a hub with checkpoints in a store.")
    parser.add_argument("--consumer", choices=("aio", "sync"), default="aio")
    parser.add_argument("--journal", type=Path, help="file for what is done; default: the screen")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    progress = Progress(programs.JournalWriter(options.journal))
    try:
        addresses = programs.addresses_from_environment()
        if options.consumer == "aio":
            asyncio.run(consume_aio(addresses, progress))
        else:
            consume_sync(addresses, progress)
    except CheckpointStoreError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
