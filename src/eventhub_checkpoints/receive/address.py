"""What a transport offers: the address of a hub, queries to it, connections, and streams."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, ReadSettings
from eventhub_checkpoints.records import Scope


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """Properties of a partition at one moment.

    Attributes:
        first_sequence_number: of the first retained event; equal to `next_sequence_number` if no
            event is retained.
        next_sequence_number: of the next event to be enqueued.
        last_enqueued_offset: of the newest event, an opaque string.
        last_enqueued_time: of the newest event, UTC; None where the transport does not report it.
    """

    partition_id: str
    first_sequence_number: int
    next_sequence_number: int
    last_enqueued_offset: str
    last_enqueued_time: datetime | None

    @property
    def is_empty(self) -> bool:
        """Return whether no event is retained."""
        return self.first_sequence_number == self.next_sequence_number


class HubProperties(NamedTuple):
    """Properties of a hub.

    Attributes:
        partition_ids: in numeric order.
        created_at: UTC; later if the hub was deleted and created again. None where the transport
            does not report it.
    """

    partition_ids: list[str]
    created_at: datetime | None


class HubState(NamedTuple):
    """What a hub has at one moment.

    Attributes:
        created: see `HubProperties`; ISO 8601 with milliseconds, "" if not reported.
        partitions: by id, in numeric order.
    """

    created: str
    partitions: dict[str, PartitionProperties]


class HubQueries(ABC):
    """Queries to one hub, through connections that are kept until it is closed.

    It connects when it is first used, and again where a connection was lost. It is used by one
    thread at a time.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def ask(
        self, partition_ids: Sequence[str], timeout: float
    ) -> tuple[HubProperties, dict[str, PartitionProperties]]:
        """Return the properties of the hub, and of these partitions, queried at the same time.

        A partition that the hub does not have is left out.

        Raises:
            ConfigurationError: the namespace has no such hub, or refuses access.
            HubUnavailableError: no answer within `timeout` (s), or the retries are used up.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections; never raises."""

    def state(self, expected: Iterable[str] = (), timeout: float = OPERATION_TIMEOUT) -> HubState:
        """Return the properties of the hub and of all its partitions; raises as `ask`.

        Args:
            expected: ids that the hub probably has. If they are all that it has, one query is
                enough, else there is a second one.
            timeout: seconds for everything together.
        """
        deadline = time.monotonic() + timeout
        hub, partitions = self.ask([*expected], timeout)
        while unknown := [id_ for id_ in hub.partition_ids if id_ not in partitions]:
            hub, more = self.ask(unknown, max(0.0, deadline - time.monotonic()))
            partitions |= more
        created = hub.created_at.isoformat(timespec="milliseconds") if hub.created_at else ""
        return HubState(created, {id_: partitions[id_] for id_ in hub.partition_ids})


STOP_CHECK = 0.1
"""Seconds between two checks of a waiting thread whether its stream is still read."""


class StoppedError(Exception):
    """Reading was stopped; ends a thread and is never shown."""


@dataclass(frozen=True, slots=True)
class Portion:
    """What one call of `Stream.next` returns at most; the public path returns what the client does.

    Attributes:
        size: bytes of bodies after which no more events are read.
        rows: number of events; None: `ReadSettings.rows_per_batch`.
        fields: fields of `Columns` that are filled; None: all.
    """

    size: int = 16 * 2**20
    rows: int | None = None
    fields: Collection[str] | None = None


WHOLE = Portion()


class Stream(ABC):
    """Events of one partition from a position on, in columns, until it is closed.

    Unless `ReadSettings.owner_level` is set, retries and speculative tasks may read the same events
    concurrently, and no other reader is disconnected. After a reconnect it may repeat events; the
    caller drops them by sequence number.

    Attributes:
        portion: may be replaced between two calls of `next`.
    """

    portion: Portion = WHOLE

    @property
    def reached(self) -> int:
        """Sequence number before which no event is missing from those returned.

        Numbers below it that were not returned do not exist. 0 where the transport does not report
        it.
        """
        return 0

    @property
    def is_over(self) -> bool:
        """Return whether the transport reported that no more events follow; this may be revoked."""
        return False

    @property
    def is_away(self) -> bool:
        """Return whether the hub is being connected again, for which `next` has its own limit."""
        return False

    @property
    def trouble(self) -> str:
        """Return why no events arrive, as far as the transport knows; else an empty string."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def next(self, timeout: float) -> Columns | None:
        """Return the next events in partition order; None after `timeout` (s) without any.

        The columns may be empty where `reached` has advanced without events. A stream that is over
        returns None immediately.

        Raises:
            ConfigurationError: the hub or consumer group does not exist, or access is refused.
            HubUnavailableError: the transport gave up after its own retries.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop receiving; connections may be closed in the background."""


DEFAULT_CONSUMER_GROUP = "$Default"


class Address(ABC):
    """Hub as read by one consumer group. Can be pickled; its `repr` shows no secret.

    Attributes:
        fully_qualified_namespace: as the client and every checkpoint store spell it.
        eventhub_name: as typed.
        consumer_group: the group that reads the events.
    """

    __slots__ = ()

    fully_qualified_namespace: str
    eventhub_name: str
    consumer_group: str

    @property
    def lasting_namespace(self) -> str:
        """Namespace by which the hub can be recognized for good; "" if there is none."""
        return self.fully_qualified_namespace

    @abstractmethod
    def open_queries(self) -> HubQueries:
        """Return queries to the hub; the caller closes them."""

    @abstractmethod
    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        """Return the sequence number of the first event at an offset or time.

        Returns:
            None if no event arrived within `timeout` (s), or the hub has no such position.
        """

    @abstractmethod
    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """Open a stream from one sequence number up to, not including, another.

        It may deliver some events before and after these, and some of them twice.
        """

    def connect(self) -> "Connection":
        """Return a connection for streams that are read one after another; the caller closes it."""
        return Connection(self)

    def scope(self, consumer_group: str | None = None) -> Scope:
        """Return the scope under which a store keeps the checkpoints of this hub."""
        return Scope(
            self.fully_qualified_namespace,
            self.eventhub_name,
            consumer_group or self.consumer_group,
        )

    def __str__(self) -> str:
        return f"{self.fully_qualified_namespace}/{self.eventhub_name}"


OpenStream = Callable[[str, int, int, ReadSettings], Stream]
"""Function such as `Address.open_stream`."""


class Connection:
    """Way to a hub for streams that one thread reads one after another.

    Here each stream connects and disconnects; a transport that can do better overrides this.

    Args:
        address: the hub.
    """

    def __init__(self, address: Address) -> None:
        self.address = address

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        """Open a stream as `Address.open_stream` does; the previous one must be closed."""
        return self.address.open_stream(partition_id, start, until, settings)

    @property
    def is_usable(self) -> bool:
        """Return whether the connection, idle since the last stream, still serves the next one."""
        return True

    def close(self) -> None:
        """Disconnect, if there is a connection; never raises."""


def check_types(address: Address, connection_string: object, settings: object) -> None:
    """Refuse an address of which a name or the connection string is no string, or settings no dict.

    Raises:
        ConfigurationError: the message shows types only, as a value may be a connection string.
    """
    for name, value in (
        ("fully_qualified_namespace", address.fully_qualified_namespace),
        ("eventhub_name", address.eventhub_name),
        ("consumer_group", address.consumer_group),
        ("connection_string", connection_string),
    ):
        require_type(name, value, isinstance(value, str), "a string")
    require_type("settings", settings, isinstance(settings, Mapping), "a dict")


def checked_group(name: str, consumer_group: object) -> str:
    """Return the name of a consumer group, unchanged.

    Raises:
        ConfigurationError: it cannot be a name; `name` is the setting it came from.
    """
    return checked_name(
        name, consumer_group, f"a consumer group of the hub, such as {DEFAULT_CONSUMER_GROUP}"
    )


def checked_name(name: str, value: object, expected: str) -> str:
    """Return a name that may be shown in messages about the hub, unchanged.

    Args:
        name: the setting it came from.
        value: the value of the setting.
        expected: description of a valid value.

    Raises:
        ConfigurationError: it is not a non-empty string, or it holds a secret, such as a
            connection string that belongs in another setting.
    """
    if isinstance(value, str) and value.strip() and not holds_secret(value):
        return value
    raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")
