"""Spark jobs that begin where a consumer group stopped.

`EventPosition` is one place in a partition; `starting_positions` turns a store's checkpoints
into the options of the JVM connector, of Spark's Kafka source, and of this package's own
`format("eventhubs")`, which lives in `eventhub_checkpoints.spark.source`. Nothing here needs
Java or PySpark but that last module.
"""

from eventhub_checkpoints.spark.position import EventPosition
from eventhub_checkpoints.spark.positions import StartingPositions, starting_positions

__all__ = ["EventPosition", "StartingPositions", "starting_positions"]
