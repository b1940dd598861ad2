"""`python -m eventhub_checkpoints.cli.demo.spark_job`: a PySpark job that goes on from checkpoints.

It takes hub and store from EVENTHUB_CONNECTION_STRING and CHECKPOINT_STORE, reads everything
from the stored checkpoints to the present end of the hub, and notes each event.
"""

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

from eventhub_checkpoints.cli.demo.journal import JournalWriter
from eventhub_checkpoints.cli.demo.place import HUB_VARIABLE, STORE_VARIABLE


def main(arguments: list[str] | None = None) -> None:
    """Read the rest of the hub."""
    parser = argparse.ArgumentParser(description="Read what follows the checkpoints, with Spark.")
    parser.add_argument("--journal", type=Path, help="file for what is read; default: the screen")
    journal = JournalWriter(parser.parse_args(arguments).journal)
    # Spark's own Python processes need this Python, with this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.appName("from the checkpoints on")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    events = (
        spark.read.format("eventhubs")
        .option("connectionString", f"env:{HUB_VARIABLE}")
        .option("checkpointStore", f"env:{STORE_VARIABLE}")
        .load()
    )
    found = defaultdict(list)
    for row in events.select("partition", "sequenceNumber").collect():
        found[row.partition].append(row.sequenceNumber)
    for partition, numbers in found.items():
        journal.processed(partition, numbers)
    spark.stop()


if __name__ == "__main__":
    main()
