"""Checkpoint every event, but write only some of the checkpoints to the store.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

Only the store is wrapped; the handler is unchanged. Missing tables or containers are created.
Without Azure: `ehcp demo --keep` fills a local hub, prints both variables and keeps the hub
running.

It runs until Ctrl-C. Run it twice: the second run continues where the first one stopped.
"""

import asyncio
import os
from collections import Counter
from contextlib import suppress

from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import CoalescingCheckpointStore, open_store


async def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    coalescing = CoalescingCheckpointStore(store, every(events=1000, seconds=5))
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=coalescing
    )
    asked: Counter[str] = Counter()

    async def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        for event in events:
            await context.update_checkpoint(event)  # remembered, and written by the policy
        asked[context.partition_id] += len(events)
        first, last = events[0].sequence_number, events[-1].sequence_number
        print(f"partition {context.partition_id}: {first} to {last}")

    async def on_partition_close(context: PartitionContext, reason: CloseReason) -> None:
        await coalescing.flush()
        partition_id, stats = context.partition_id, coalescing.stats()[context.partition_id]
        print(f"partition {partition_id}: {asked[partition_id]} checkpoints, {stats.saved} writes")

    async with store, coalescing, client:
        await store.create()
        with suppress(asyncio.CancelledError):  # Ctrl-C
            await client.receive_batch(
                on_event_batch, on_partition_close=on_partition_close, starting_position="-1"
            )


if __name__ == "__main__":
    asyncio.run(main())
