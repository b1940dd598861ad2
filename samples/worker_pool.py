"""Process events in threads, in any order; no checkpoint passes an unfinished event.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server

The handler tracks each event in the order of arrival, and a thread finishes it. Missing tables or
containers are created. Without Azure: `ehcp demo --keep` fills a local hub, prints both variables
and keeps the hub running.

The program ends when no event has arrived for 5 seconds. Run it twice: the second run continues
where the first one stopped.
"""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import Checkpointer, every, open_store
from eventhub_checkpoints.checkpointer import Ticket

IDLE_SECONDS = 5.0
THREADS = 8


class Work:
    """The processing in the threads; some events take longer than others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}
        self.finished = self.overtaken = 0
        self.news = threading.Event()

    def process(self, partition_id: str, event: EventData) -> None:
        time.sleep(random.uniform(0, 0.02))
        number = event.sequence_number or 0
        with self._lock:
            self.finished += 1
            self.overtaken += number < self._newest.setdefault(partition_id, number)
            self._newest[partition_id] = max(number, self._newest[partition_id])
        self.news.set()


def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    checkpointer = Checkpointer(store, every(events=500, seconds=5), max_pending=200)
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )
    work = Work()
    began: set[str] = set()

    with store, checkpointer, ThreadPoolExecutor(THREADS) as pool:
        store.create()

        def finish(ticket: Ticket, partition_id: str, event: EventData) -> None:
            with ticket:
                work.process(partition_id, event)

        # `receive` would deliver one event per partition in turn, and wait for idle partitions.
        def on_batch(context: PartitionContext, events: list[EventData]) -> None:
            for event in events:
                ticket = checkpointer.track(context, event)  # waits while 200 are in flight
                if context.partition_id not in began:
                    print(f"partition {context.partition_id}: began at {event.sequence_number}")
                    began.add(context.partition_id)
                pool.submit(finish, ticket, context.partition_id, event)

        options = {**checkpointer.handlers, "starting_position": "-1", "prefetch": 20}
        receiving = threading.Thread(target=client.receive_batch, args=(on_batch,), kwargs=options)
        receiving.start()
        while work.news.wait(IDLE_SECONDS):
            work.news.clear()
        client.close()
        receiving.join()  # then everything is saved and the partitions are released
    print(f"{work.finished} events, {work.overtaken} of them after a later one")


if __name__ == "__main__":
    main()
