"""Spark jobs that begin where a consumer group stopped, and leave their progress there.

Positions: `EventPosition` is one place in a partition. `starting_positions` and
`ending_positions` turn a store's checkpoints into the options of the JVM connector, of Spark's
Kafka source, and of this package's own `format("eventhubs")`; `gap_report` holds them against
the hub. `HubRanges` are the options of exact ranges, `ranges_of` the ranges of a DataFrame.

Progress: `parse_progress` and `read_spark_checkpoint` say what a query has committed,
`CheckpointPublisher` brings it back into a store, and `ExactlyOnce` writes results and positions
in one transaction of a database.

Nothing here needs Java or PySpark to be imported; `eventhub_checkpoints.spark.source` does.

Folders: `positions`, `source` (the data source), `progress`, `publishing`, `exactly_once`; `given`
checks arguments.
"""

from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.spark.exactly_once.foreach_batch import ExactlyOnce
from eventhub_checkpoints.spark.exactly_once.staging import StagingTable
from eventhub_checkpoints.spark.positions.from_store import ending_positions, starting_positions
from eventhub_checkpoints.spark.positions.gaps import GapReport, PartitionGap, gap_report
from eventhub_checkpoints.spark.positions.hub_positions import EndingPositions, StartingPositions
from eventhub_checkpoints.spark.positions.ranges import HubRanges, ranges_by_task, ranges_of
from eventhub_checkpoints.spark.progress.parsing import parse_progress
from eventhub_checkpoints.spark.progress.query_checkpoint import (
    SparkCheckpoint,
    read_spark_checkpoint,
)
from eventhub_checkpoints.spark.publishing.publisher import CheckpointPublisher

__all__ = [
    "CheckpointPublisher",
    "EndingPositions",
    "EventPosition",
    "ExactlyOnce",
    "GapReport",
    "HubRanges",
    "OffsetRange",
    "PartitionGap",
    "SparkCheckpoint",
    "StagingTable",
    "StartingPositions",
    "ending_positions",
    "gap_report",
    "parse_progress",
    "ranges_by_task",
    "ranges_of",
    "read_spark_checkpoint",
    "starting_positions",
]
