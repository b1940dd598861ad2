"""Process a hub's events and continue where the last run stopped: the asyncio client.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server, for
                                 consumers on one machine; for several machines, for example
                                 https://ACCOUNT.blob.core.windows.net/CONTAINER

Missing tables or containers are created. Without Azure: `ehcp demo --keep` fills a local hub and a
SQLite file, prints both variables and keeps the hub running. Then set them in another terminal and
run `python samples/consume_aio.py`.

The program ends when no event has arrived for 5 seconds. Run it twice, or start two at once.
"""

import asyncio
import os
from contextlib import suppress

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints.aio import open_store

IDLE_SECONDS = 5.0


async def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )
    began: dict[str, int | None] = {}
    news = asyncio.Event()

    async def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        if began.setdefault(context.partition_id, first) == first:
            print(f"partition {context.partition_id}: began at {first}")
        await context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: processed {first} to {last}")
        news.set()

    async with store, client:
        await store.create()
        receiving = asyncio.create_task(
            client.receive_batch(on_event_batch, starting_position="-1")
        )
        with suppress(TimeoutError):
            while True:
                await asyncio.wait_for(news.wait(), IDLE_SECONDS)
                news.clear()
        await client.close()
        # receive_batch would return after the sleep of its load balancing, up to 30 s later.
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
    print(f"no more events in {len(began)} partitions")


if __name__ == "__main__":
    asyncio.run(main())
