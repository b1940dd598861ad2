"""Process a hub's events and continue where the last run stopped: the synchronous client.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server, for
                                 consumers on one machine; for several machines, for example
                                 https://ACCOUNT.blob.core.windows.net/CONTAINER

Missing tables or containers are created. Without Azure: `ehcp demo --keep` fills a local hub and a
SQLite file, prints both variables and keeps the hub running. Then set them in another terminal and
run `python samples/consume_sync.py`.

The program ends when no event has arrived for 5 seconds. Run it twice, or start two at once.
"""

import os
import threading

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import open_store

IDLE_SECONDS = 5.0


def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )
    began: dict[str, int | None] = {}
    news = threading.Event()

    def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        if began.setdefault(context.partition_id, first) == first:
            print(f"partition {context.partition_id}: began at {first}")
        context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: processed {first} to {last}")
        news.set()

    store.create()
    receiving = threading.Thread(
        target=client.receive_batch, args=(on_event_batch,), kwargs={"starting_position": "-1"}
    )
    receiving.start()
    while news.wait(IDLE_SECONDS):
        news.clear()
    client.close()
    receiving.join()
    store.close()
    print(f"no more events in {len(began)} partitions")


if __name__ == "__main__":
    main()
