"""Consumers to Spark: a batch job that begins where the consumers of a group stopped.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: https://ACCOUNT.blob.core.windows.net/CONTAINER,
                                 or sqlite:///checkpoints.db, where Spark runs on this machine

The checkpoints of a consumer have to be in it. Without Azure: `ehcp demo --keep` fills a local hub
and a SQLite file, prints both variables and keeps the hub up. In another terminal set them, and run
`python samples/consumer_to_spark.py`. It finds nothing, for the demo ends with Spark; it finds all
with `CHECKPOINT_STORE=memory:`, where no checkpoint is.

It reads everything from the stored checkpoints to the present end of the hub, prints what it
read of each partition, and ends; the checkpoints stay as they are, so a second run reads the same
again. The stream in `spark_to_consumer.py` moves them on. The secrets stay in the environment: no
plan shows them.
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def main() -> None:
    spark = (
        SparkSession.builder.appName("from the checkpoints on")
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
