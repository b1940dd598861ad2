"""Consumer on azure-eventhub's synchronous client."""

import signal
import threading
from typing import Any

from azure.eventhub import CloseReason, EventHubConsumerClient

from eventhub_checkpoints import open_store
from eventhub_checkpoints.cli.demo.consumer import BALANCING, KEEP_UNCONFIRMED, Progress
from eventhub_checkpoints.cli.demo.place import CONSUMER_GROUP, Place

SOCKET_TIMEOUT = 0.05
"""Seconds. This client waits this long on every idle partition in turn."""


def consume(place: Place, progress: Progress) -> None:
    """Consume until SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with open_store(place.store_url, keep_unconfirmed=KEEP_UNCONFIRMED) as store:
        client = EventHubConsumerClient.from_connection_string(
            place.connection_string,
            CONSUMER_GROUP,
            checkpoint_store=store,
            socket_timeout=SOCKET_TIMEOUT,
            **BALANCING,
        )

        def receive() -> None:
            try:
                _receive(client, progress)
            finally:
                stop.set()

        receiving = threading.Thread(target=receive)
        receiving.start()
        stop.wait()
        client.close()
        receiving.join()


def _receive(client: EventHubConsumerClient, progress: Progress) -> None:
    def on_initialize(context: Any) -> None:
        progress.took(context.partition_id)

    def on_batch(context: Any, events: list[Any]) -> None:
        progress.processed(context.partition_id, events)
        if (event := progress.due(context.partition_id)) is not None:
            save(context, event)

    def on_close(context: Any, reason: CloseReason) -> None:
        event = progress.left(context.partition_id)
        # The new owner of a lost partition saves its checkpoints.
        if event is not None and reason is CloseReason.SHUTDOWN:
            save(context, event)

    def save(context: Any, event: Any) -> None:
        context.update_checkpoint(event)
        progress.saved(context.partition_id, event)

    client.receive_batch(
        on_batch,
        on_partition_initialize=on_initialize,
        on_partition_close=on_close,
        max_batch_size=100,
        starting_position="-1",
    )
