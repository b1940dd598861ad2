"""Process a hub's events and continue where the last run stopped: the asyncio client.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server, for
                                 consumers on one machine; for several machines, for example
                                 https://ACCOUNT.blob.core.windows.net/CONTAINER

Missing tables or containers are created. Without Azure: `ehcp demo --keep` fills a local hub and a
SQLite file, prints both variables and keeps the hub running. Then set them in another terminal and
run `python samples/consume_aio.py`.

It runs until Ctrl-C. Run it twice, or start two at once.
"""

import asyncio
import os
from contextlib import suppress

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints.aio import open_store


async def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )

    async def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        await context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: {first} to {last}")

    async with store, client:
        await store.create()
        with suppress(asyncio.CancelledError):  # Ctrl-C
            await client.receive_batch(on_event_batch, starting_position="-1")


if __name__ == "__main__":
    asyncio.run(main())
