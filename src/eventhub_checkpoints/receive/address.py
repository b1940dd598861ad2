"""A hub for any transport, and what its partitions hold."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.stream import Stream
from eventhub_checkpoints.records import Scope


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """What a partition holds at this moment.

    Attributes:
        first_sequence_number: of the first event that is still retained; equal to
            `next_sequence_number` where there is none.
        next_sequence_number: that the next event will get.
        last_enqueued_offset: of the newest event, opaque text.
        last_enqueued_time: of the newest event, UTC; None where the transport does not tell.
    """

    partition_id: str
    first_sequence_number: int
    next_sequence_number: int
    last_enqueued_offset: str
    last_enqueued_time: datetime | None

    @property
    def is_empty(self) -> bool:
        """Whether no event is retained."""
        return self.first_sequence_number == self.next_sequence_number


DEFAULT_CONSUMER_GROUP = "$Default"


class Address(ABC):
    """One hub as one consumer group reads it. Can be pickled; its `repr` shows no secret.

    Attributes:
        fully_qualified_namespace: as the client and every checkpoint store spell it.
        eventhub_name: as typed.
        consumer_group: in which events are read.
    """

    __slots__ = ()

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str

    @abstractmethod
    def ask_partition_ids(self) -> list[str]:
        """The ids of all partitions, in numeric order; blocks without a bound of its own.

        Raises:
            ConfigurationError: there is no such hub.
        """

    @abstractmethod
    def ask_properties(self, partition_id: str) -> PartitionProperties:
        """What a partition holds; blocks without a bound of its own.

        Raises:
            ConfigurationError: there is no such hub.
        """

    def try_properties(self, partition_id: str) -> PartitionProperties:
        """Ask for what a partition holds that may be gone: once, where the transport can."""
        return self.ask_properties(partition_id)

    @abstractmethod
    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        """The sequence number of the first event at an offset or time.

        Returns:
            None where none came within `timeout` (s).
        """

    @abstractmethod
    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """The events from one sequence number until, not including, another.

        It may deliver some events before and behind these, and some of them twice.
        """

    def scope(self, consumer_group: str | None = None) -> Scope:
        """Under which names a store keeps the checkpoints of this hub."""
        return Scope(
            self.fully_qualified_namespace,
            self.eventhub_name,
            consumer_group or self.consumer_group,
        )

    def __str__(self) -> str:
        return f"{self.fully_qualified_namespace}/{self.eventhub_name}"


def checked_group(name: str, consumer_group: object) -> str:
    """The name of a consumer group, as it was given.

    Raises:
        ConfigurationError: it cannot be a name; `name` says which setting that was.
    """
    return checked_name(
        name, consumer_group, f"a consumer group of the hub, such as {DEFAULT_CONSUMER_GROUP}"
    )


def checked_name(name: str, value: object, expected: str) -> str:
    """A name that stands in every message about the hub, as it was given.

    Args:
        name: which setting this is.
        value: what it holds.
        expected: what it should.

    Raises:
        ConfigurationError: it is not a non-empty string, or it holds a secret, such as a
            connection string that belongs into another setting.
    """
    if isinstance(value, str) and value.strip() and not holds_secret(value):
        return value
    raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")
