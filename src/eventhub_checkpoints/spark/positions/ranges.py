"""Exact ranges of a hub, and the ranges of the rows of a DataFrame."""

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
"""Options that end every other partition where it begins, so that nothing of it is read."""


@dataclass(frozen=True, slots=True)
class HubRanges:
    """At most one range per partition, and its formats for three Spark sources.

    Attributes:
        eventhub_name: name as typed: the JVM connector ignores a name in another case.
        ranges: in any order. A partition that is not named is not read. Kafka's source has no way
            to express this: see `completed`.

    Raises:
        ConfigurationError: a partition has two ranges, or an item is not an `OffsetRange`.
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
        """First event of each range."""
        begins = {one.partition_id: one.from_sequence_number for one in self.ranges}
        return StartingPositions(self.eventhub_name, by_number(begins))

    @property
    def ends(self) -> EndingPositions:
        """First event after each range."""
        ends = {one.partition_id: one.until_sequence_number for one in self.ranges}
        return EndingPositions(self.eventhub_name, by_number(ends))

    def to_source(self) -> dict[str, str]:
        """Return the options of this package's own source."""
        return {**UNNAMED, **self.starts.to_source(), **self.ends.to_source()}

    def to_connector(self) -> dict[str, str]:
        """Return the options of the JVM connector."""
        return {f"eventhubs.{name}": text for name, text in self.to_source().items()}

    def to_kafka(self, topic: str | None = None) -> dict[str, str]:
        """Return the options of Spark's Kafka source, which needs every partition of the topic.

        Args:
            topic: the subscribed topic; default: the hub's name as typed.
        """
        return {
            "startingOffsets": self.starts.to_kafka(topic),
            "endingOffsets": self.ends.to_kafka(topic),
        }

    def completed(self, hub: Hub, timeout: float = OPERATION_TIMEOUT) -> "HubRanges":
        """Return the same with an empty range for each partition that is not named.

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
    """Return positions at these events, partitions in numeric order."""
    return {
        partition: EventPosition.from_sequence_number(numbers[partition], inclusive=True)
        for partition in sorted(numbers, key=int)
    }


OURS = ("'' as hub", "partition", "sequenceNumber as first", "sequenceNumber as last")
"""Expressions over the columns of the JVM connector and of this package's source."""

KAFKA = ("topic as hub", "partition", "offset as first", "offset as last")


def ranges_of(frame: "DataFrame") -> list[OffsetRange]:
    """Return the ranges of the rows of a DataFrame, by partition, from the first to the last row.

    Runs a Spark job that reads the source again, unless the DataFrame is persisted. Inside
    `foreachBatch`, `read_spark_checkpoint(...).pending` has the exact ranges without a job.

    Args:
        frame: with the columns of the JVM connector, of this package's source, or of Kafka's.

    Raises:
        ConfigurationError: it has neither set of columns, or rows of several topics.
    """
    return [made(row) for row in grouped(frame, "-1")]


def ranges_by_task(frame: "DataFrame") -> dict[int, list[OffsetRange]]:
    """Return the ranges of each task, by Spark's task number; otherwise as `ranges_of`.

    For a DataFrame directly from the source: after a shuffle the rows of one range are spread over
    all tasks.
    """
    found: dict[int, list[OffsetRange]] = defaultdict(list)
    for row in grouped(frame, "spark_partition_id()"):
        found[row["task"]].append(made(row))
    return dict(sorted(found.items()))


def grouped(frame: "DataFrame", task: str) -> "list[Row]":
    """Return the first and last number by task and partition, partitions in numeric order."""
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
    """Return the expressions for the position columns of this DataFrame."""
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
    """Return the range from the first to the last number, both included."""
    return OffsetRange(str(row["partition"]), row["min(first)"], row["max(last)"] + 1)
