"""Process events in threads, in any order; no checkpoint passes an unfinished event.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

The handler tracks each event in the order of arrival, and a thread finishes it. It prints the
events in the order in which they finish. Missing tables or containers are created. Without Azure:
`ehcp demo --keep` fills a local hub, prints both variables and keeps the hub running.

It runs until Ctrl-C. Run it twice: the second run continues where the first one stopped.
"""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import Checkpointer, every, open_store
from eventhub_checkpoints.checkpointer import TrackedEvent

THREADS = 8
output = threading.Lock()


def process(partition_id: str, event: EventData) -> None:
    """Do the work for an event; some events take longer than others."""
    time.sleep(random.uniform(0, 0.02))
    with output:
        print(f"partition {partition_id}: {event.sequence_number}")


def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    checkpointer = Checkpointer(store, every(events=500, seconds=5), max_pending=200)
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )

    def finish(tracked: TrackedEvent, partition_id: str, event: EventData) -> None:
        with tracked:
            process(partition_id, event)

    # `receive` would deliver one event per partition in turn, and wait for idle partitions.
    def on_batch(context: PartitionContext, events: list[EventData]) -> None:
        for event in events:
            tracked = checkpointer.track(context, event)  # waits while 200 are in flight
            workers.submit(finish, tracked, context.partition_id, event)

    # Closed from right to left: the client, and when its thread has ended, everything is saved and
    # the partitions are released; the store is closed last.
    with (
        store,
        checkpointer,
        ThreadPoolExecutor(THREADS) as workers,
        ThreadPoolExecutor(1) as thread,
        client,
    ):
        store.create()
        received = thread.submit(
            client.receive_batch,
            on_batch,
            starting_position="-1",
            prefetch=20,
            **checkpointer.handlers,
        )
        with suppress(KeyboardInterrupt):  # in the main thread, so no handler is interrupted
            received.result()


if __name__ == "__main__":
    main()
