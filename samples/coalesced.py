"""Checkpoint every event, but write only some of the checkpoints to the store.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

Only the store is wrapped; the handler is unchanged. Missing tables or containers are created.
Without Azure: `ehcp demo --keep` fills a local hub, prints both variables and keeps the hub
running.

The program ends when no event has arrived for 5 seconds. Run it twice: the second run continues
where the first one stopped.
"""

import asyncio
import os
from collections import Counter
from contextlib import suppress

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import CoalescingCheckpointStore, open_store

IDLE_SECONDS = 5.0


async def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    coalescing = CoalescingCheckpointStore(store, every(events=1000, seconds=5))
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=coalescing
    )
    processed: Counter[str] = Counter()
    news = asyncio.Event()

    async def on_event(context: PartitionContext, event: EventData | None) -> None:
        assert event is not None  # None comes only with max_wait_time
        if not processed[context.partition_id]:
            print(f"partition {context.partition_id}: began at {event.sequence_number}")
        processed[context.partition_id] += 1
        await context.update_checkpoint(event)  # remembered, and written by the policy
        news.set()

    async with store, coalescing, client:
        await store.create()
        receiving = asyncio.create_task(client.receive(on_event, starting_position="-1"))
        with suppress(TimeoutError):
            while True:
                await asyncio.wait_for(news.wait(), IDLE_SECONDS)
                news.clear()
        await coalescing.flush()
        writes = sum(stats.saved for stats in coalescing.stats().values())
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
    print(f"{processed.total()} checkpoints, {writes} writes")


if __name__ == "__main__":
    asyncio.run(main())
