"""Add a consumer while events arrive, and process no event twice.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath; events are also sent to it
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

A first consumer processes all partitions. A second one joins; the load balancer of its client wants
half of them, and its store asks the first one for each. The program counts how often every event
was processed. Replace `HandoverStore(...)` by `store` to see what a client does otherwise. Both
consumers run in one process here; in several processes the code is the same.

Missing tables or containers are created. Without Azure: `ehcp demo --keep` fills a local hub,
prints both variables and keeps the hub running.
"""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient, PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import Checkpointer, HandoverStore, open_store

HUB = os.environ["EVENTHUB_CONNECTION_STRING"]
INTERVAL = 1.0
"""Seconds between two rounds of load balancing; the client's default is 30."""
EXPIRES_AFTER = 60.0

processed: Counter[tuple[str, int]] = Counter()
partitions: defaultdict[str, set[str]] = defaultdict(set)
news, joined, done = asyncio.Event(), asyncio.Event(), asyncio.Event()


async def consume(name: str) -> None:
    """Process events until all is done."""
    store = open_store(os.environ["CHECKPOINT_STORE"])
    handover = HandoverStore(store, expires_after=EXPIRES_AFTER)
    checkpointer = Checkpointer(handover, every(events=5000, seconds=5))
    client = EventHubConsumerClient.from_connection_string(
        HUB,
        "$Default",
        checkpoint_store=handover,
        load_balancing_interval=INTERVAL,
        partition_ownership_expiration_interval=EXPIRES_AFTER,
    )

    async def on_event(context: PartitionContext, event: EventData | None) -> None:
        assert event is not None  # None comes only with max_wait_time
        async with checkpointer.track(context, event):
            processed[context.partition_id, event.sequence_number or 0] += 1
        if context.partition_id not in partitions[name]:
            partitions[name].add(context.partition_id)
            print(f"{name}: partition {context.partition_id} from {event.sequence_number}")
        news.set()

    async with store, checkpointer, asyncio.TaskGroup() as tasks, client:
        await store.create()
        tasks.create_task(client.receive(on_event, starting_position="-1", **checkpointer.handlers))
        await done.wait()


async def send(producer: EventHubProducerClient, partition_ids: list[str]) -> None:
    """Send events to all partitions until the second consumer has its share."""
    while not joined.is_set():
        for partition_id in partition_ids:
            await producer.send_batch(
                [EventData("event") for _ in range(5)], partition_id=partition_id
            )
        await asyncio.sleep(0.05)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true, which an event may change."""
    while not condition():
        news.clear()
        await news.wait()


async def main() -> None:
    producer = EventHubProducerClient.from_connection_string(HUB)
    async with producer, asyncio.TaskGroup() as tasks:
        partition_ids = await producer.get_partition_ids()
        sending = tasks.create_task(send(producer, partition_ids))
        tasks.create_task(consume("first"))
        await until(lambda: len(partitions["first"]) == len(partition_ids))
        tasks.create_task(consume("second"))
        await until(lambda: len(partitions["second"]) == len(partition_ids) // 2)
        joined.set()
        await sending
        for partition_id in partition_ids:
            last = await producer.get_partition_properties(partition_id)
            number: int = last["last_enqueued_sequence_number"]
            await until(partial(processed.__contains__, (partition_id, number)))
        done.set()
    twice = processed.total() - len(processed)
    print(f"{len(processed)} events, processed twice: {twice}")


if __name__ == "__main__":
    asyncio.run(main())
