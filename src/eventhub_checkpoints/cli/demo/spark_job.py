"""`python -m eventhub_checkpoints.cli.demo.spark_job`: resume from checkpoints with PySpark.

The environment variables EVENTHUB_CONNECTION_STRING and CHECKPOINT_STORE name the hub and the
store. The job reads everything from the stored checkpoints to the current end of the hub, writes
each event to a journal, and saves its progress in the store.
"""

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from eventhub_checkpoints.cli.demo import programs
from eventhub_checkpoints.spark import CheckpointPublisher


def main(arguments: list[str] | None = None) -> None:
    """Read the hub from the stored checkpoints to its current end."""
    parser = argparse.ArgumentParser(description="Read what follows the checkpoints, with Spark.")
    parser.add_argument("--journal", type=Path, help="file for what is read; default: the screen")
    journal = programs.JournalWriter(parser.parse_args(arguments).journal)
    addresses = programs.addresses_from_environment()
    journal.phase("Java and Spark start")
    # Spark's Python workers need this interpreter, in which this package is installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.appName("from the checkpoints on")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    journal.phase("the stream runs")
    stream(spark, addresses, journal)
    journal.phase("Spark stops")
    spark.stop()


def stream(
    spark: SparkSession, addresses: programs.Addresses, journal: programs.JournalWriter
) -> None:
    """Read everything after the checkpoints once, and publish the progress to the store."""

    def note(batch: DataFrame, _batch_id: int) -> None:
        numbers_by_partition = defaultdict(list)
        for row in batch.select("partition", "sequenceNumber").collect():
            numbers_by_partition[row.partition].append(row.sequenceNumber)
        for partition, numbers in numbers_by_partition.items():
            journal.processed(partition, numbers)

    events = (
        spark.readStream.format("eventhubs")
        .option("connectionString", f"env:{programs.HUB_VARIABLE}")
        .option("checkpointStore", f"env:{programs.STORE_VARIABLE}")
        .load()
    )
    with (
        TemporaryDirectory() as location,
        CheckpointPublisher(addresses.store_url, addresses.scope) as publisher,
    ):
        publisher.attach(spark)
        query = (
            publisher.observe(events)
            .writeStream.foreachBatch(note)
            .option("checkpointLocation", location)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        publisher.flush()


if __name__ == "__main__":
    main()
