"""Positions and ranges of a hub's partitions, and their formats for three Spark sources."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.settings import require_flag, require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition, checked_partitions
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, OffsetRange
from eventhub_checkpoints.spark import position_formats as formats
from eventhub_checkpoints.spark.hub import Hub, ask_properties, sequence_numbers
from eventhub_checkpoints.spark.validation import column_names, require_hub_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


class NotOptions:
    """Positions or ranges that are passed to Spark as options."""

    __slots__ = ()

    def keys(self) -> NoReturn:
        """Refuse `options(**positions)`: Python asks whatever follows `**` for its keys.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(
            f"{type(self).__name__} are not options themselves; pass .options(**positions."
            "to_source()) to format('eventhubs'), or the result of to_connector() or to_kafka() to "
            "the option of another source"
        )


@dataclass(frozen=True, slots=True)
class HubPositions(NotOptions):
    """Common base of `StartingPositions` and `EndingPositions`, which are to be used instead.

    Attributes:
        eventhub_name: name as typed: the JVM connector ignores a name in another case.
        positions: every partition's position, by partition id, in numeric order.

    Raises:
        ConfigurationError: the hub has no name, or a position is not an `EventPosition`.
    """

    eventhub_name: str
    positions: Mapping[str, EventPosition]

    OPTION: ClassVar[str]
    """Name of the option of the JVM connector and of this package's source."""

    def __post_init__(self) -> None:
        require_hub_name(self.eventhub_name)
        is_mapping = isinstance(self.positions, Mapping)
        require_type("positions", self.positions, is_mapping, "a dict by partition id")
        for partition, position in self.positions.items():
            is_position = isinstance(position, EventPosition)
            name = f"the position of partition {partition}"
            require_type(name, position, is_position, "an EventPosition")

    @classmethod
    def from_connector(cls, text: str, eventhub_name: str) -> Self:
        """Parse the output of `to_connector`.

        Raises:
            ConfigurationError: it is malformed, or names another hub.
        """
        return cls(eventhub_name, formats.parse_positions(text, eventhub_name, cls.OPTION))

    @classmethod
    def from_kafka(cls, text: str, topic: str) -> Self:
        """Parse the output of `to_kafka`; the topic is the hub.

        Raises:
            ConfigurationError: it is malformed, or does not name the topic.
        """
        return cls(topic, formats.kafka_positions(text, topic, cls.OPTION))

    @classmethod
    def after(
        cls, eventhub_name: str, last: Mapping[str, int], partition_ids: Iterable[str | int]
    ) -> Self:
        """Return the positions after the last committed events.

        These are the results of `parse_progress` and `read_spark_checkpoint`.

        Args:
            eventhub_name: as the source has it, case included.
            last: sequence numbers by partition id.
            partition_ids: every partition of the hub; one that is not in `last` has no committed
                event and gets the start of the stream.

        Raises:
            ConfigurationError: a partition id or a number is invalid.
        """
        expected = "a dict of sequence numbers by partition id"
        require_type("last", last, isinstance(last, Mapping), expected)
        every_id = checked_partitions([*last, *checked_partitions(partition_ids)])
        positions = {
            partition: EventPosition.from_sequence_number(last[partition])
            if partition in last
            else formats.EARLIEST
            for partition in every_id
        }
        return cls(eventhub_name, positions)

    def to_connector(self) -> str:
        """Return the connector's `eventhubs.startingPositions` or `.endingPositions`."""
        return formats.connector_positions(self.eventhub_name, self.positions)

    def to_source(self) -> dict[str, str]:
        """Return the options of this package's own source, for `.options(**...)`."""
        return {self.OPTION: self.to_connector()}

    def resolved(self, hub: Hub, timeout: float = OPERATION_TIMEOUT) -> Self:
        """Return the same positions as sequence numbers, which new events do not change.

        Args:
            hub: a connection string, a `HubAddress`, or a client (sync), which can only resolve the
                ends of partitions.
            timeout: seconds for each request.

        Raises:
            ConfigurationError: the hub has no such partition, or a client cannot resolve a
                position.
            HubUnavailableError: the hub did not answer in time.
        """
        return self._with_numbers(hub, self.positions, timeout)

    def _with_numbers(
        self, hub: Hub, unresolved: Mapping[str, EventPosition], timeout: float
    ) -> Self:
        resolved = by_number(sequence_numbers(hub, unresolved, timeout))
        return replace(self, positions={**self.positions, **resolved})

    def _to_kafka(
        self, topic: str | None, hub: Hub | None, refused: EventPosition | None, timeout: float
    ) -> str:
        positions = self
        unknown = formats.unknown_to_kafka(self.positions, refused)
        if unknown and hub is not None:
            positions = self._with_numbers(hub, unknown, timeout)
        return formats.kafka_offsets(topic or self.eventhub_name, positions.positions, refused)


@dataclass(frozen=True, slots=True)
class StartingPositions(HubPositions):
    """First event to read of each partition."""

    OPTION: ClassVar[str] = "startingPositions"

    def to_kafka(
        self,
        topic: str | None = None,
        *,
        hub: Hub | None = None,
        batch: bool = False,
        timeout: float = OPERATION_TIMEOUT,
    ) -> str:
        """Return the option `startingOffsets` of Spark's Kafka source.

        Args:
            topic: the subscribed topic; default: the hub's name as typed.
            hub: resolves the positions that have no sequence number, which Kafka needs.
            batch: for `spark.read`, which cannot begin at the latest event.
            timeout: seconds for each request to the hub.

        Raises:
            ConfigurationError: a partition begins at a position for which Kafka has no number, such
                as a time or a bare offset, and `hub` is None.
            HubUnavailableError: the hub did not answer in time.
        """
        require_flag("batch", batch)
        return self._to_kafka(topic, hub, formats.LATEST if batch else None, timeout)


@dataclass(frozen=True, slots=True)
class EndingPositions(HubPositions):
    """First event *not* to read of each partition, for batches: ends are exclusive."""

    OPTION: ClassVar[str] = "endingPositions"

    def to_kafka(
        self,
        topic: str | None = None,
        *,
        hub: Hub | None = None,
        timeout: float = OPERATION_TIMEOUT,
    ) -> str:
        """Return the option `endingOffsets` of Spark's Kafka source.

        The option does not accept the earliest event.

        Args:
            topic: the subscribed topic; default: the hub's name as typed.
            hub: resolves the positions that have no sequence number, which Kafka needs.
            timeout: seconds for each request to the hub.

        Raises:
            ConfigurationError: a partition ends at a position for which Kafka has no number, such
                as a time, a bare offset or the start of the stream, and `hub` is None.
            HubUnavailableError: the hub did not answer in time.
        """
        return self._to_kafka(topic, hub, formats.EARLIEST, timeout)


UNNAMED = dict.fromkeys(
    ("startingPosition", "endingPosition"),
    formats.compact(formats.connector_fields(formats.EARLIEST)),
)
"""Options that end every other partition where it begins, so that nothing of it is read."""


@dataclass(frozen=True, slots=True)
class HubRanges(NotOptions):
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
        is_list = isinstance(self.ranges, Sequence) and not isinstance(self.ranges, str | bytes)
        require_type("ranges", self.ranges, is_list, "a list of OffsetRange")
        for item in self.ranges:
            require_type("a range", item, isinstance(item, OffsetRange), "an OffsetRange")
        counts = Counter(item.partition_id for item in self.ranges)
        if twice := sorted((key for key, count in counts.items() if count > 1), key=int):
            raise ConfigurationError(
                f"partition {', '.join(twice)} has several ranges; read each with options of its "
                "own, and join them by DataFrame.union"
            )

    @property
    def starts(self) -> StartingPositions:
        """First event of each range."""
        numbers = {item.partition_id: item.from_sequence_number for item in self.ranges}
        return StartingPositions(self.eventhub_name, by_number(numbers))

    @property
    def ends(self) -> EndingPositions:
        """First event after each range."""
        numbers = {item.partition_id: item.until_sequence_number for item in self.ranges}
        return EndingPositions(self.eventhub_name, by_number(numbers))

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
        ranges = {}
        for partition, properties in ask_properties(hub, timeout).items():
            end = properties.next_sequence_number
            ranges[partition] = OffsetRange(partition, end, end)
        ranges |= {item.partition_id: item for item in self.ranges}
        return HubRanges(self.eventhub_name, list(ranges.values()))


def by_number(numbers: dict[str, int]) -> dict[str, EventPosition]:
    """Return positions at these events, partitions in numeric order."""
    return {
        partition: EventPosition.from_sequence_number(numbers[partition], inclusive=True)
        for partition in sorted(numbers, key=int)
    }


HUB_COLUMNS = ("'' as hub", "partition", "sequenceNumber as first", "sequenceNumber as last")
"""Expressions over the columns of the JVM connector and of this package's source."""

KAFKA_COLUMNS = ("topic as hub", "partition", "offset as first", "offset as last")


@with_checked_arguments
def ranges_of(frame: "DataFrame") -> list[OffsetRange]:
    """Return the ranges of the rows of a DataFrame, by partition, from the first to the last row.

    Runs a Spark job that reads the source again, unless the DataFrame is persisted. Inside
    `foreachBatch`, `read_spark_checkpoint(...).pending` has the exact ranges without a job.

    Args:
        frame: with the columns of the JVM connector, of this package's source, or of Kafka's.

    Raises:
        ConfigurationError: it has neither set of columns, or rows of several topics.
    """
    return [_range_of(row) for row in _first_and_last(frame, "-1")]


@with_checked_arguments
def ranges_by_task(frame: "DataFrame") -> dict[int, list[OffsetRange]]:
    """Return the ranges of each task, by Spark's task number; otherwise as `ranges_of`.

    For a DataFrame directly from the source: after a shuffle the rows of one range are spread over
    all tasks.
    """
    ranges: dict[int, list[OffsetRange]] = defaultdict(list)
    for row in _first_and_last(frame, "spark_partition_id()"):
        ranges[row["task"]].append(_range_of(row))
    return dict(sorted(ranges.items()))


def _first_and_last(frame: "DataFrame", task: str) -> "list[Row]":
    """Return the first and last number by task and partition, partitions in numeric order.

    Raises:
        ConfigurationError: as in `ranges_of`.
    """
    names = column_names(frame)
    if {"partition", "sequenceNumber"} <= set(names):
        columns = HUB_COLUMNS
    elif {"topic", "partition", "offset"} <= set(names):
        columns = KAFKA_COLUMNS
    else:
        raise ConfigurationError(
            f"the DataFrame has the columns {', '.join(names)}; its ranges are determined by "
            "partition and sequenceNumber, or by topic, partition and offset of Kafka's source"
        )
    by_partition = frame.selectExpr(*columns, f"{task} as task").groupBy("hub", "task", "partition")
    rows = by_partition.agg({"first": "min", "last": "max"}).collect()
    topics = sorted({row["hub"] for row in rows})
    if len(topics) > 1:
        raise ConfigurationError(
            f"the rows are of the topics {', '.join(topics)}; filter those of one topic"
        )
    return sorted(rows, key=lambda row: int(row["partition"]))


def _range_of(row: "Row") -> OffsetRange:
    """Return the range from the first to the last number, both included."""
    return OffsetRange(str(row["partition"]), row["min(first)"], row["max(last)"] + 1)
