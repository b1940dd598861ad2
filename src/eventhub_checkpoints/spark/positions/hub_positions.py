"""Positions of a hub's partitions, and their formats for three Spark sources."""

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
        require_kind("positions", self.positions, is_mapping, "a dict by partition id")
        for partition, one in self.positions.items():
            is_one = isinstance(one, EventPosition)
            require_kind(f"the position of partition {partition}", one, is_one, "an EventPosition")

    @classmethod
    def from_connector(cls, text: str, eventhub_name: str) -> Self:
        """Parse the output of `to_connector`.

        Raises:
            ConfigurationError: it is malformed, or names another hub.
        """
        return cls(eventhub_name, read_positions(text, eventhub_name, cls.OPTION))

    @classmethod
    def from_kafka(cls, text: str, topic: str) -> Self:
        """Parse the output of `to_kafka`; the topic is the hub.

        Raises:
            ConfigurationError: it is malformed, or does not name the topic.
        """
        return cls(topic, kafka_positions(text, topic, cls.OPTION))

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
        behind = {
            partition: EventPosition.from_sequence_number(last[partition])
            if partition in last
            else EARLIEST
            for partition in checked_partitions([*last, *checked_partitions(partition_ids)])
        }
        return cls(eventhub_name, behind)

    def to_connector(self) -> str:
        """Return the connector's `eventhubs.startingPositions` or `.endingPositions`."""
        return connector_positions(self.eventhub_name, self.positions)

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
        return self._to_kafka(topic, hub, LATEST if batch else None, timeout)


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
        return self._to_kafka(topic, hub, EARLIEST, timeout)
