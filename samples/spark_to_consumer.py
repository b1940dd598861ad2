"""Spark to consumers: a stream goes on from the checkpoints, and a consumer goes on after it.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: https://ACCOUNT.blob.core.windows.net/CONTAINER,
                                 or sqlite:///checkpoints.db, where Spark runs on this machine

The stream begins at the group's checkpoints, writes what it reads to the folder `orders`, and
brings its own progress back into the same store. Then the official client, with that store,
finds nothing left to read: it prints `nothing is left`, or the events that came meanwhile.
Run it again: Spark goes on by its own checkpoint, in the folder `orders-query`.

Tables or container are created where they are missing. No consumer of the group may run beside
it: both would write the same checkpoints. Without Azure: take the hub of `ehcp demo --keep`, and
`CHECKPOINT_STORE=sqlite:///fresh.db`.
"""

import os
import sys
import threading

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext
from pyspark.sql import SparkSession

from eventhub_checkpoints import open_store
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

LOCATION = "orders-query"
IDLE_SECONDS = 5.0


def main() -> None:
    hub = HubAddress.from_connection_string(os.environ["EVENTHUB_CONNECTION_STRING"], "$Default")
    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
    stream(hub)
    consume(hub)


def stream(hub: HubAddress) -> None:
    """Read what is there with Spark, and leave the progress in the store."""
    spark = (
        SparkSession.builder.appName("from checkpoint to checkpoint")
        .master(os.environ.get("SPARK_MASTER", "local[2]"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    events = (
        spark.readStream.format("eventhubs")
        .option("connectionString", "env:EVENTHUB_CONNECTION_STRING")
        .option("checkpointStore", "env:CHECKPOINT_STORE")
        .load()
    )
    with CheckpointPublisher(os.environ["CHECKPOINT_STORE"], hub.scope()) as publisher:
        publisher.catch_up(LOCATION)  # what a crash of the last run kept from the store
        publisher.attach(spark)
        query = (
            publisher.observe(events)
            .writeStream.format("parquet")
            .option("path", "orders")
            .option("checkpointLocation", LOCATION)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        publisher.flush()
        stats = publisher.stats()
    print(f"Spark has left {stats.published} checkpoints, {stats.with_offset} with offset")
    spark.stop()


def consume(hub: HubAddress) -> None:
    """Go on behind Spark with the official client, until nothing comes for a while."""
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string, hub.consumer_group, checkpoint_store=store
    )
    news = threading.Event()
    counts: list[int] = []

    def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        print(f"partition {context.partition_id}: {first} to {last}")
        counts.append(len(events))
        context.update_checkpoint(events[-1])
        news.set()

    receiving = threading.Thread(
        target=client.receive_batch, args=(on_event_batch,), kwargs={"starting_position": "-1"}
    )
    receiving.start()
    while news.wait(IDLE_SECONDS):
        news.clear()
    client.close()
    receiving.join()
    store.close()
    print(f"{sum(counts)} events came after Spark" if counts else "nothing is left")


if __name__ == "__main__":
    main()
