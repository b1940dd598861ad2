"""One object per partition, with its own state; checkpoints are saved automatically.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

The state is a count of events by length. An event that fails every time is added to a list of dead
letters, and the partition continues. Missing tables or containers are created. Without Azure:
`ehcp demo --keep` fills a local hub, prints both variables and keeps the hub running.

It runs until SIGTERM or Ctrl-C. Run it twice: the second run continues where the first one stopped.
"""

import asyncio
import os
from collections import Counter
from functools import partial

from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import EventProcessor, PartitionProcessor, open_store


class Lengths(PartitionProcessor):
    """Counts the events of one partition during one session."""

    async def initialize(self) -> None:
        self.lengths: Counter[int] = Counter()

    async def process_events(self, events: list[EventData]) -> None:
        lengths = Counter(length_of(event) for event in events)
        # Only after all events succeeded: a batch that raises is passed again.
        self.lengths += lengths
        first, last = events[0].sequence_number, events[-1].sequence_number
        print(f"partition {self.context.partition_id}: {first} to {last}")

    async def close(self, reason: CloseReason) -> None:
        events = self.lengths.total()
        print(f"partition {self.context.partition_id}: {events} events, {reason.name}")


def length_of(event: EventData) -> int:
    body = event.body_as_str()
    if body == "poison":
        raise ValueError("nobody can process this event")
    return len(body)


async def main() -> None:
    dead_letters = []

    async def bury(context: PartitionContext, event: EventData, error: Exception) -> None:
        dead_letters.append((context.partition_id, event.sequence_number))

    async with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        await store.create()
        processor = EventProcessor(
            partial(
                EventHubConsumerClient.from_connection_string,
                os.environ["EVENTHUB_CONNECTION_STRING"],
                "$Default",
            ),
            Lengths,
            store=store,
            policy=every(events=500, seconds=5),
            attempts=2,
            on_poison=bury,
        )
        await processor.run()
    print(f"{len(dead_letters)} dead letters: {dead_letters}")


if __name__ == "__main__":
    asyncio.run(main())
