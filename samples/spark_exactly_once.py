"""Exactly once: counts per device in a database, each event counted once, whatever fails.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    RESULTS_DATABASE             SQLAlchemy URL: sqlite:///results.db, if Spark runs on this
                                 machine, or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE

It needs the extras `spark` and `sql`, or `postgres`.

It reads all available events, counts the events of each device, prints the totals and ends. The
counts and the positions are committed in one transaction. Kill it, run it again, delete the folder
`counts-query`, run two at once: the totals stay correct.

The device is the event's property `device`, otherwise its partition key.
"""

import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection, create_engine, text

from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import ExactlyOnce

# Spark's Python workers must be this Python, which has the package and pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

TABLE = """
    CREATE TABLE IF NOT EXISTS device_counts (device TEXT PRIMARY KEY, events BIGINT NOT NULL)
"""
ADD = """
    INSERT INTO device_counts (device, events) VALUES (:device, :events)
    ON CONFLICT (device) DO UPDATE SET events = device_counts.events + excluded.events
"""


def by_device(events: DataFrame) -> DataFrame:
    """Count the events of one batch that were not counted before."""
    device = "coalesce(properties['device'], partitionKey, 'unknown') as device"
    counts = events.selectExpr(device).groupBy("device").count()
    return counts.withColumnRenamed("count", "events")


def add(connection: Connection, rows: Any) -> None:
    """Add the counts to the totals; the transaction also stores the positions, so no commit."""
    connection.execute(text(ADD), [row.asDict() for row in rows])


def main() -> None:
    hub = HubAddress.from_connection_string(os.environ["EVENTHUB_CONNECTION_STRING"], "$Default")
    engine = create_engine(os.environ["RESULTS_DATABASE"])
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    spark = (
        SparkSession.builder.appName("exactly once")
        .master(os.environ.get("SPARK_MASTER", "local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with ExactlyOnce(engine, hub.scope(), add, transform=by_device) as sink:
        events = (
            spark.readStream.format("eventhubs")
            .option("connectionString", "env:EVENTHUB_CONNECTION_STRING")
            .options(**sink.starting_positions(hub=hub).to_source())
            .load()
        )
        query = (
            events.writeStream.foreachBatch(sink)
            .option("checkpointLocation", "counts-query")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    with engine.connect() as connection:
        for device, count in connection.execute(text("SELECT * FROM device_counts ORDER BY 1")):
            print(f"{device}: {count} events")
    engine.dispose()
    spark.stop()


if __name__ == "__main__":
    main()
