"""Spark jobs that begin where a consumer group stopped, and leave their progress there.

Positions: `EventPosition` is a position in a partition. `starting_positions` and
`ending_positions` turn a store's checkpoints into the options of the JVM connector, of Spark's
Kafka source, and of this package's own `format("eventhubs")`; `gap_report` compares them with
the hub. `HubRanges` are the options of exact ranges, `ranges_of` the ranges of a DataFrame.

Progress: `parse_progress` and `read_spark_checkpoint` return what a query has committed,
`behind_latest` how many events wait, `CheckpointPublisher` writes the progress to a store, and
`ExactlyOnce` writes results and positions in one transaction of a database.

Nothing here needs Java or PySpark to be imported; `eventhub_checkpoints.spark.source` does.

- `positions`: positions and ranges of a hub; `position_formats`: their JSON for the connector and
  Kafka; `checkpoint_positions`: from a store; `gaps`: compared with a hub; `hub`: queries to one.
- `offsets`: of the sources in a query's progress. `query_checkpoint`: a query's checkpoint folder.
- `publisher`, `query_follower`, `listener`: progress into a store; the last needs PySpark.
- `exactly_once`: the sink. `new_rows`: what a batch has that is not stored; `staging`: the
  transaction, and rows on their way to it.
- `source`: the data source. `sink`: `format("eventhubs")` for writing, and `deduplicate` for
  what it sends twice. `options`: of both; `refused_options`: of other sources and sinks.
- `kept_connections`: of a Spark worker between two tasks.
- `validation`: checks of arguments.
"""

from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.spark.checkpoint_positions import ending_positions, starting_positions
from eventhub_checkpoints.spark.exactly_once import ExactlyOnce
from eventhub_checkpoints.spark.gaps import GapReport, PartitionGap, gap_report
from eventhub_checkpoints.spark.offsets import BehindLatest, behind_latest, parse_progress
from eventhub_checkpoints.spark.positions import (
    EndingPositions,
    HubRanges,
    StartingPositions,
    ranges_by_task,
    ranges_of,
)
from eventhub_checkpoints.spark.publisher import CheckpointPublisher
from eventhub_checkpoints.spark.query_checkpoint import SparkCheckpoint, read_spark_checkpoint
from eventhub_checkpoints.spark.staging import StagingTable

__all__ = [
    "BehindLatest",
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
    "behind_latest",
    "ending_positions",
    "gap_report",
    "parse_progress",
    "ranges_by_task",
    "ranges_of",
    "read_spark_checkpoint",
    "starting_positions",
]
