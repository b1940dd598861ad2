"""Consumer on azure-eventhub's asynchronous client."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

from azure.eventhub import CloseReason
from azure.eventhub.aio import EventHubConsumerClient

from eventhub_checkpoints.aio import open_store
from eventhub_checkpoints.cli.demo.consumer import BALANCING, KEEP_UNCONFIRMED, Progress
from eventhub_checkpoints.cli.demo.place import CONSUMER_GROUP, Place


def consume(place: Place, progress: Progress) -> None:
    """Consume until SIGTERM or SIGINT."""
    asyncio.run(_consume(place, progress))


async def _consume(place: Place, progress: Progress) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_store(place.store_url, keep_unconfirmed=KEEP_UNCONFIRMED) as store:
        client = EventHubConsumerClient.from_connection_string(
            place.connection_string, CONSUMER_GROUP, checkpoint_store=store, **BALANCING
        )
        async with client:
            receiving = asyncio.create_task(_receive(client, progress))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([receiving, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await client.close()
            # After `close` it only sleeps until its next load balancing.
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving


async def _receive(client: EventHubConsumerClient, progress: Progress) -> None:
    async def on_initialize(context: Any) -> None:
        progress.took(context.partition_id)

    async def on_batch(context: Any, events: list[Any]) -> None:
        progress.processed(context.partition_id, events)
        if (event := progress.due(context.partition_id)) is not None:
            await save(context, event)

    async def on_close(context: Any, reason: CloseReason) -> None:
        event = progress.left(context.partition_id)
        # The new owner of a lost partition saves its checkpoints.
        if event is not None and reason is CloseReason.SHUTDOWN:
            await save(context, event)

    async def save(context: Any, event: Any) -> None:
        await context.update_checkpoint(event)
        progress.saved(context.partition_id, event)

    await client.receive_batch(
        on_batch,
        on_partition_initialize=on_initialize,
        on_partition_close=on_close,
        max_batch_size=100,
        starting_position="-1",
    )
