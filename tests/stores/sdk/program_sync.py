"""A user's program: processes so many events, or all until it is killed, and prints each.

It knows only the official package; `test_import_line.py` changes the line that imports it.
"""

import os
import sys
import threading
from typing import Any

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore


def main(limit: int) -> None:
    store = BlobCheckpointStore.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], os.environ["BLOB_CONTAINER"]
    )
    client = EventHubConsumerClient.from_connection_string(
        os.environ["EVENTHUB_CONNECTION_STRING"],
        consumer_group="$Default",
        checkpoint_store=store,
        load_balancing_interval=0.4,
        partition_ownership_expiration_interval=float(os.environ["EXPIRY"]),
        socket_timeout=0.02,
    )
    processed = 0
    enough = threading.Event()

    def on_event_batch(context: Any, events: list[Any]) -> None:
        nonlocal processed
        for event in events:
            if processed == limit:
                enough.set()
                return
            context.update_checkpoint(event)
            print(context.partition_id, event.sequence_number, flush=True)
            processed += 1

    receiving = threading.Thread(
        target=client.receive_batch, args=(on_event_batch,), kwargs={"starting_position": "-1"}
    )
    receiving.start()
    enough.wait()
    client.close()
    receiving.join()


if __name__ == "__main__":
    main(int(sys.argv[1]))
