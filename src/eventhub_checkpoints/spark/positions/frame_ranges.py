"""From the rows of a DataFrame back to the ranges that they were read from."""

from collections import defaultdict
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.spark.given import column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

OURS = ("'' as hub", "partition", "sequenceNumber as first", "sequenceNumber as last")
"""What is asked of the JVM connector's columns and of our own, which are the same."""

KAFKA = ("topic as hub", "partition", "offset as first", "offset as last")


def ranges_of(frame: "DataFrame") -> list[OffsetRange]:
    """The ranges that the rows of a DataFrame lie in, by partition, from the first to the last.

    A job of its own that reads the source once more, unless the DataFrame is persisted. Inside of
    `foreachBatch`, `read_spark_checkpoint(...).pending` has the exact ranges without a job.

    Args:
        frame: with the columns of the JVM connector, of this package's source, or of Kafka's.

    Raises:
        ConfigurationError: it has neither columns, or rows of several topics.
    """
    return [made(row) for row in grouped(frame, "-1")]


def ranges_by_task(frame: "DataFrame") -> dict[int, list[OffsetRange]]:
    """Which ranges each task holds, by Spark's number of the task; else as `ranges_of`.

    Meant for a DataFrame as the source has given it: after a shuffle the rows of one range are
    spread over all tasks.
    """
    found: dict[int, list[OffsetRange]] = defaultdict(list)
    for row in grouped(frame, "spark_partition_id()"):
        found[row["task"]].append(made(row))
    return dict(sorted(found.items()))


def grouped(frame: "DataFrame", task: str) -> "list[Row]":
    """First and last number by task and partition, partitions in numeric order."""
    columns = columns_of(frame)
    numbered = frame.selectExpr(*columns, f"{task} as task")
    by_partition = numbered.groupBy("hub", "task", "partition")
    rows = by_partition.agg({"first": "min", "last": "max"}).collect()
    topics = sorted({row["hub"] for row in rows})
    if len(topics) > 1:
        raise ConfigurationError(
            f"the rows are of the topics {', '.join(topics)}; filter those of one topic"
        )
    return sorted(rows, key=lambda row: int(row["partition"]))


def columns_of(frame: "DataFrame") -> tuple[str, ...]:
    """How the columns of the positions are called there."""
    names = column_names(frame)
    if {"partition", "sequenceNumber"} <= set(names):
        return OURS
    if {"topic", "partition", "offset"} <= set(names):
        return KAFKA
    raise ConfigurationError(
        f"the DataFrame has the columns {', '.join(names)}; its ranges are told by "
        "partition and sequenceNumber, or by topic, partition and offset of Kafka's source"
    )


def made(row: "Row") -> OffsetRange:
    """The range from the first to the last number, both included."""
    return OffsetRange(str(row["partition"]), row["min(first)"], row["max(last)"] + 1)
