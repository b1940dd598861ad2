"""Consumers to Spark: a batch job that starts where the consumers of a group stopped.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: https://ACCOUNT.blob.core.windows.net/CONTAINER,
                                 or sqlite:///checkpoints.db, if Spark runs on this machine

The store must contain checkpoints of a consumer. Without Azure: `ehcp demo --keep` fills a local
hub and a SQLite file, prints both variables and keeps the hub running. Set them in another
terminal and run `python samples/consumer_to_spark.py`. It finds no events, because the demo ends
with Spark; with `CHECKPOINT_STORE=memory:`, which has no checkpoints, it finds all.

It reads everything from the stored checkpoints to the current end of the hub, prints what it read
of each partition, and ends. The checkpoints do not change, so a second run reads the same events.
The stream in `spark_to_consumer.py` advances them. The secrets stay in the environment and do not
appear in plans.
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def main() -> None:
    spark = (
        SparkSession.builder.appName("from the checkpoints")
        .master(os.environ.get("SPARK_MASTER", "local[2]"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    events = (
        spark.read.format("eventhubs")
        .option("connectionString", "env:EVENTHUB_CONNECTION_STRING")
        .option("checkpointStore", "env:CHECKPOINT_STORE")
        .load()
    )
    found = (
        events.groupBy("partition")
        .agg(
            expr("count(*) as events"),
            expr("min(sequenceNumber) as first"),
            expr("max(sequenceNumber) as last"),
        )
        .orderBy(expr("int(partition)"))
        .collect()
    )
    for row in found:
        print(f"partition {row.partition}: {row.events} events, {row.first} to {row.last}")
    print(f"{sum(row.events for row in found)} events after the checkpoints")
    spark.stop()


if __name__ == "__main__":
    main()
