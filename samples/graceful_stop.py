"""Stop on SIGTERM so that the next consumer reads no event again.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

After SIGTERM, for example from Kubernetes or systemd, or Ctrl-C, no new event is started.
In-flight events are finished and saved before their partition is released. Missing tables or
containers are created. Without Azure: `ehcp demo --keep` fills a local hub, prints both variables
and keeps the hub running.

Run it, stop it with `kill PID` while it works, and run it again.
"""

import asyncio
import os
import signal
from contextlib import suppress

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import every
from eventhub_checkpoints.aio import Checkpointer, open_store
from eventhub_checkpoints.aio.checkpointer import TrackedEvent


async def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    # Less than the time between SIGTERM and SIGKILL: with Kubernetes 30 s.
    checkpointer = Checkpointer(store, every(seconds=10), max_pending=50, drain_timeout=20)
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )
    finished: dict[str, list[int]] = {}

    async def process(partition_id: str, number: int, tracked: TrackedEvent) -> None:
        async with tracked:
            await asyncio.sleep(0.2)
            finished[partition_id].append(number)

    async def on_event(context: PartitionContext, event: EventData | None) -> None:
        assert event is not None  # None comes only with max_wait_time
        tracked = await checkpointer.track(context, event)
        partition_id, number = context.partition_id, event.sequence_number or 0
        if partition_id not in finished:
            finished[partition_id] = []
            print(f"partition {partition_id}: began at {number}", flush=True)
        tasks.create_task(process(partition_id, number, tracked))

    this_task = asyncio.current_task()
    assert this_task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this_task.cancel)
    # The client is closed first and waits for in-flight events; the store is closed last.
    async with store, checkpointer, asyncio.TaskGroup() as tasks, client:
        await store.create()
        with suppress(asyncio.CancelledError):
            await client.receive(on_event, starting_position="-1", **checkpointer.handlers)
    for partition_id, numbers in sorted(finished.items()):
        print(f"partition {partition_id}: finished {min(numbers)} to {max(numbers)}")


if __name__ == "__main__":
    asyncio.run(main())
