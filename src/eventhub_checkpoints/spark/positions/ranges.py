"""Exact ranges of a hub, and the ranges that the rows of a DataFrame were read from."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, OffsetRange
from eventhub_checkpoints.spark.given import column_names, require_hub_name, require_kind
from eventhub_checkpoints.spark.positions.hub_positions import EndingPositions, StartingPositions
from eventhub_checkpoints.spark.positions.hubs import Hub, ask_properties
from eventhub_checkpoints.spark.positions.texts import compact, connector_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

UNNAMED = dict.fromkeys(
    ("startingPosition", "endingPosition"),
    compact(connector_fields(EventPosition.from_start_of_stream())),
)
"""Of a partition that no range names nothing is read: it ends where it begins."""


@dataclass(frozen=True, slots=True)
class HubRanges:
    """At most one range per partition, as the options of a batch read by three Spark sources.

    Attributes:
        eventhub_name: as it was typed: the JVM connector ignores a name in another case.
        ranges: in any order. A partition that is not named is not read, which Kafka's source
            cannot be told: see `completed`.

    Raises:
        ConfigurationError: two ranges are of one partition, or one of them is no range.
    """

    eventhub_name: str
    ranges: Sequence[OffsetRange]

    def __post_init__(self) -> None:
        require_hub_name(self.eventhub_name)
        for one in self.ranges:
            require_kind("a range", one, isinstance(one, OffsetRange), "an OffsetRange")
        named = [one.partition_id for one in self.ranges]
        twice = sorted({partition for partition in named if named.count(partition) > 1}, key=int)
        if twice:
            raise ConfigurationError(
                f"partition {', '.join(twice)} has several ranges; read each with options of its "
                "own, and join them by DataFrame.union"
            )

    @property
    def starts(self) -> StartingPositions:
        """Where each range begins."""
        begins = {one.partition_id: one.from_sequence_number for one in self.ranges}
        return StartingPositions(self.eventhub_name, by_number(begins))

    @property
    def ends(self) -> EndingPositions:
        """The first event behind each range."""
        ends = {one.partition_id: one.until_sequence_number for one in self.ranges}
        return EndingPositions(self.eventhub_name, by_number(ends))

    def to_source(self) -> dict[str, str]:
        """The options of this package's own source."""
        return {**UNNAMED, **self.starts.to_source(), **self.ends.to_source()}

    def to_connector(self) -> dict[str, str]:
        """The options of the JVM connector."""
        return {f"eventhubs.{name}": text for name, text in self.to_source().items()}

    def to_kafka(self, topic: str | None = None) -> dict[str, str]:
        """The options of Spark's Kafka source, which wants every partition of the topic named.

        Args:
            topic: as it is subscribed to; default: the hub's name as typed.
        """
        return {
            "startingOffsets": self.starts.to_kafka(topic),
            "endingOffsets": self.ends.to_kafka(topic),
        }

    def completed(self, hub: Hub, timeout: float = OPERATION_TIMEOUT) -> "HubRanges":
        """The same with an empty range for each partition of the hub that is not named.

        Raises:
            HubUnavailableError: the hub did not answer in time.
        """
        named = {one.partition_id: one for one in self.ranges}
        empty = {
            partition: OffsetRange(partition, held.next_sequence_number, held.next_sequence_number)
            for partition, held in ask_properties(hub, timeout).items()
        }
        return HubRanges(self.eventhub_name, list({**empty, **named}.values()))


def by_number(numbers: dict[str, int]) -> dict[str, EventPosition]:
    """Positions at these events, partitions in numeric order."""
    return {
        partition: EventPosition.from_sequence_number(numbers[partition], inclusive=True)
        for partition in sorted(numbers, key=int)
    }


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
