"""One position per partition of a hub, in the words of three Spark sources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from eventhub_checkpoints.receive.position import EventPosition, checked_partitions
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.spark.given import require_hub_name, require_kind
from eventhub_checkpoints.spark.positions.hubs import Hub, numbers_of
from eventhub_checkpoints.spark.positions.texts import (
    EARLIEST,
    LATEST,
    connector_positions,
    kafka_offsets,
    kafka_positions,
    read_positions,
    unknown_to_kafka,
)


@dataclass(frozen=True, slots=True)
class HubPositions:
    """What starting and ending positions have in common; make one of these two.

    Attributes:
        eventhub_name: as it was typed: the JVM connector ignores a name in another case.
        positions: every partition's position, by partition id, in numeric order.

    Raises:
        ConfigurationError: the hub has no name, or a position is none.
    """

    eventhub_name: str
    positions: Mapping[str, EventPosition]

    OPTION: ClassVar[str]
    """What the JVM connector and this package's source call them."""

    def __post_init__(self) -> None:
        require_hub_name(self.eventhub_name)
        is_mapping = isinstance(self.positions, Mapping)
        require_kind("positions", self.positions, is_mapping, "a dict by partition id")
        for partition, one in self.positions.items():
            is_one = isinstance(one, EventPosition)
            require_kind(f"the position of partition {partition}", one, is_one, "an EventPosition")

    @classmethod
    def from_connector(cls, text: str, eventhub_name: str) -> Self:
        """Read what `to_connector` has written.

        Raises:
            ConfigurationError: it is malformed, or names another hub.
        """
        return cls(eventhub_name, read_positions(text, eventhub_name, cls.OPTION))

    @classmethod
    def from_kafka(cls, text: str, topic: str) -> Self:
        """Read what `to_kafka` has written; the topic is the hub.

        Raises:
            ConfigurationError: it is malformed, or does not name the topic.
        """
        return cls(topic, kafka_positions(text, topic, cls.OPTION))

    @classmethod
    def after(
        cls, eventhub_name: str, last: Mapping[str, int], partition_ids: Iterable[str | int]
    ) -> Self:
        """Behind the last committed events, as `parse_progress` and `read_spark_checkpoint` tell.

        Args:
            eventhub_name: as the source has it, case included.
            last: sequence numbers by partition id.
            partition_ids: every partition of the hub; one that is not in `last` has no committed
                event and gets the start of the stream.

        Raises:
            ConfigurationError: a partition id or a number is none.
        """
        behind = {
            partition: EventPosition.from_sequence_number(last[partition])
            if partition in last
            else EARLIEST
            for partition in checked_partitions([*last, *checked_partitions(partition_ids)])
        }
        return cls(eventhub_name, behind)

    def to_connector(self) -> str:
        """The JVM connector's option `eventhubs.startingPositions` or `.endingPositions`."""
        return connector_positions(self.eventhub_name, self.positions)

    def to_source(self) -> dict[str, str]:
        """The options of this package's own source, for `.options(**...)`."""
        return {self.OPTION: self.to_connector()}

    def resolved(self, hub: Hub, timeout: float = OPERATION_TIMEOUT) -> Self:
        """The same places as sequence numbers, so that they stay while the hub moves on.

        Args:
            hub: a connection string, a `HubAddress`, or a client (sync), which can tell the ends
                of partitions and no more.
            timeout: seconds for each question.

        Raises:
            ConfigurationError: the hub has no such partition, or a client cannot tell it.
            HubUnavailableError: the hub did not answer in time.
        """
        return self._with_numbers(hub, self.positions, timeout)

    def _with_numbers(
        self, hub: Hub, unresolved: Mapping[str, EventPosition], timeout: float
    ) -> Self:
        numbers = numbers_of(hub, unresolved, timeout)
        found = {
            partition: EventPosition.from_sequence_number(number, inclusive=True)
            for partition, number in numbers.items()
        }
        return replace(self, positions={**self.positions, **found})

    def _to_kafka(
        self, topic: str | None, hub: Hub | None, refused: EventPosition | None, timeout: float
    ) -> str:
        unknown = unknown_to_kafka(self.positions, refused)
        said = self._with_numbers(hub, unknown, timeout) if unknown and hub is not None else self
        return kafka_offsets(topic or self.eventhub_name, said.positions, refused)


@dataclass(frozen=True, slots=True)
class StartingPositions(HubPositions):
    """The first event to read of each partition."""

    OPTION: ClassVar[str] = "startingPositions"

    def to_kafka(
        self,
        topic: str | None = None,
        *,
        hub: Hub | None = None,
        batch: bool = False,
        timeout: float = OPERATION_TIMEOUT,
    ) -> str:
        """The option `startingOffsets` of Spark's Kafka source.

        Args:
            topic: as it was subscribed to; default: the hub's name as typed.
            hub: asked for the numbers that Kafka needs and that are not known here.
            batch: for `spark.read`, which cannot begin at the latest event.
            timeout: seconds for each question to the hub.

        Raises:
            ConfigurationError: a partition begins where Kafka has no number for, such as a time
                or a bare offset, and no hub is given.
            HubUnavailableError: the hub did not answer in time.
        """
        return self._to_kafka(topic, hub, LATEST if batch else None, timeout)


@dataclass(frozen=True, slots=True)
class EndingPositions(HubPositions):
    """The first event *not* to read of each partition, for batches: ends are exclusive."""

    OPTION: ClassVar[str] = "endingPositions"

    def to_kafka(
        self,
        topic: str | None = None,
        *,
        hub: Hub | None = None,
        timeout: float = OPERATION_TIMEOUT,
    ) -> str:
        """The option `endingOffsets` of Spark's Kafka source, which cannot be the earliest event.

        Args:
            topic: as it was subscribed to; default: the hub's name as typed.
            hub: asked for the numbers that Kafka needs and that are not known here.
            timeout: seconds for each question to the hub.

        Raises:
            ConfigurationError: a partition ends where Kafka has no number for, such as a time, a
                bare offset or the start of the stream, and no hub is given.
            HubUnavailableError: the hub did not answer in time.
        """
        return self._to_kafka(topic, hub, EARLIEST, timeout)
