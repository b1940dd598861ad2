"""Spark to consumers: a stream starts at the checkpoints, and a consumer continues after it.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: https://ACCOUNT.blob.core.windows.net/CONTAINER,
                                 or sqlite:///checkpoints.db, if Spark runs on this machine

The stream starts at the group's checkpoints, writes the events to the folder `orders`, and
publishes its progress to the same store. Then the official client with that store reads only the
events that arrive later, until Ctrl-C. In a second run, Spark continues from its own checkpoint in
the folder `orders-query`.

Missing tables or containers are created. No consumer of the group may run at the same time, because
both would write the same checkpoints. Without Azure: use the hub of `ehcp demo --keep`, and
`CHECKPOINT_STORE=sqlite:///fresh.db`.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext
from pyspark.sql import SparkSession

from eventhub_checkpoints import open_store
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

LOCATION = "orders-query"


def main() -> None:
    hub = HubAddress.from_connection_string(os.environ["EVENTHUB_CONNECTION_STRING"], "$Default")
    with open_store(os.environ["CHECKPOINT_STORE"]) as store:
        store.create()
    stream(hub)
    consume(hub)


def stream(hub: HubAddress) -> None:
    """Read all available events with Spark, and publish the progress to the store."""
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
        publisher.catch_up(LOCATION)  # publishes what a crash of the previous run left out
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
    """Continue after Spark with the official client, until Ctrl-C."""
    store = open_store(os.environ["CHECKPOINT_STORE"])
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string, hub.consumer_group, checkpoint_store=store
    )

    def on_event_batch(context: PartitionContext, events: list[EventData]) -> None:
        first, last = events[0].sequence_number, events[-1].sequence_number
        context.update_checkpoint(events[-1])
        print(f"partition {context.partition_id}: {first} to {last}")

    with store, ThreadPoolExecutor(1) as thread, client:
        received = thread.submit(client.receive_batch, on_event_batch, starting_position="-1")
        with suppress(KeyboardInterrupt):  # in the main thread, so no handler is interrupted
            received.result()


if __name__ == "__main__":
    main()
