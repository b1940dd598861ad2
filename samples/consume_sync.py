"""Process a hub's events and continue where the last run stopped: the synchronous client.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: sqlite:///checkpoints.db needs no server, for
                                 consumers on one machine; for several machines, for example
                                 https://ACCOUNT.blob.core.windows.net/CONTAINER

Missing tables or containers are created. Without Azure: `ehcp demo --keep` fills a local hub and a
SQLite file, prints both variables and keeps the hub running. Then set them in another terminal and
run `python samples/consume_sync.py`.

It runs until Ctrl-C. Run it twice, or start two at once.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from eventhub_checkpoints import open_store


def main() -> None:
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"], "$Default", checkpoint_store=store
    )

    def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: {first} to {last}")

    # Closed from right to left: the client, and when its thread has ended, the store.
    with store, ThreadPoolExecutor(1) as thread, client:
        store.create()
        received = thread.submit(client.receive_batch, on_event_batch, starting_position="-1")
        with suppress(KeyboardInterrupt):  # in the main thread, so no handler is interrupted
            received.result()


if __name__ == "__main__":
    main()
