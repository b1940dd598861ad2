"""A batch backfill: the events of a time range, by the time at which the hub received them.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath

    python samples/spark_backfill.py 2026-11-21T10:00Z 2026-11-21T11:00Z hour-10

reads the events from the first time (inclusive) to the second (exclusive) and writes them to the
folder as Parquet. It neither reads nor writes checkpoints, and does not disturb other readers of
the hub. A second run reads the same events and replaces the folder, until they expire.
"""

import os
import sys
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def between(spark: SparkSession, begin: datetime, end: datetime) -> DataFrame:
    """Read the events that were enqueued in this range; both times need a time zone."""
    return (
        spark.read.format("eventhubs")
        .option("connectionString", "env:EVENTHUB_CONNECTION_STRING")
        .option("startingPosition", begin.isoformat())
        .option("endingPosition", end.isoformat())
        .load()
    )


def main(begin: str, end: str, folder: str) -> None:
    spark = (
        SparkSession.builder.appName("backfill")
        .master(os.environ.get("SPARK_MASTER", "local[2]"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    events = between(spark, datetime.fromisoformat(begin), datetime.fromisoformat(end))
    rows = events.selectExpr("partition", "sequenceNumber", "enqueuedTime", "body", "properties")
    rows.write.mode("overwrite").parquet(folder)
    written = spark.read.parquet(folder)
    for row in written.groupBy("partition").count().orderBy("partition").collect():
        print(f"partition {row['partition']}: {row['count']} events")
    print(f"{written.count()} events in {folder}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
