"""What somebody wants to read of a hub, and the ranges that this comes to at this moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

from eventhub_checkpoints._shared.fields import whole_number
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.checkpoints import require_checkpoints
from eventhub_checkpoints.receive.hub import list_partitions, partition_properties
from eventhub_checkpoints.receive.loss import partition_gone
from eventhub_checkpoints.receive.position import (
    POSITIONS,
    EventPosition,
    after,
    checked_partitions,
    position_of,
)
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.resolving import resolve
from eventhub_checkpoints.receive.retained import report, retained
from eventhub_checkpoints.records import Scope

Where = str | int | datetime | EventPosition
"""`"earliest"`, `"latest"`, a time, an `EventPosition`, or the sequence number of an event: the
first that is read, or as an end the first that is not."""

EXPECTED = f"a sequence number, {POSITIONS}, or a dict of these by partition id"


class Place(NamedTuple):
    """An event of a partition, and how a checkpoint tells it."""

    sequence_number: int
    offset: str | None


@dataclass(frozen=True, slots=True)
class Places:
    """One position for every partition, or one for each.

    Attributes:
        name: of the argument, for errors.
        positions: by partition id; None where `everywhere` is the one for all.
    """

    name: str
    everywhere: EventPosition | None
    positions: Mapping[str, EventPosition] | None = None

    @classmethod
    def checked(cls, name: str, given: Where | Mapping[str, Where]) -> Self:
        """Read what a user has given.

        Raises:
            ConfigurationError: it is no position, or a time without a zone.
        """
        if not isinstance(given, Mapping):
            return cls(name, place_of(name, given))
        texts = {str(partition): place_of(name, where) for partition, where in given.items()}
        return cls(name, None, {one: texts[one] for one in checked_partitions(texts)})

    def require(self, partition_ids: Iterable[str]) -> None:
        """Refuse a position of a partition that is not read; it may be misspelt."""
        if unread := (self.positions or {}).keys() - set(partition_ids):
            raise ConfigurationError(
                f"{self.name} names partition {', '.join(sorted(unread, key=int))}, which is not "
                f"among those that are read: {', '.join(partition_ids)}"
            )

    def of(self, partition_id: str) -> EventPosition:
        """The position of one partition.

        Raises:
            ConfigurationError: positions were given, and none of this partition.
        """
        if self.everywhere is not None:
            return self.everywhere
        assert self.positions is not None
        if partition_id not in self.positions:
            raise ConfigurationError(
                f"{self.name} names no position of partition {partition_id}; name it, or give "
                "partition_ids, the ones to read"
            )
        return self.positions[partition_id]


def place_of(name: str, given: Where) -> EventPosition:
    """The position that one value means; raises as `position_of`."""
    number = whole_number(given)
    if number is not None:
        return EventPosition.from_sequence_number(number, inclusive=True)
    return position_of(given, f"for {name}= {EXPECTED}")


class Plan(NamedTuple):
    """What is read.

    Attributes:
        ranges: of the partitions that have anything to read.
        passed: the last events before partitions that begin at the end, as `start` says: whoever
            begins there has done with them.
    """

    ranges: list[OffsetRange]
    passed: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which partitions, from where, until where.

    Attributes:
        partition_ids: None: all that the hub has.
        start: where a partition begins that has no checkpoint.
        until: the first event of each that is not read.
    """

    partition_ids: list[str] | None
    start: Places
    until: Places

    def plan(
        self,
        address: Address,
        stored: Mapping[str, Mapping[str, Any]],
        settings: ReadSettings,
        needed: Scope | None = None,
    ) -> Plan:
        """Ask the hub for everything that moves, once.

        Args:
            address: the hub.
            stored: checkpoints by partition id, which win over `start`.
            settings: how the ranges are going to be read.
            needed: the scope whose checkpoints every partition must have; None: none must.

        Raises:
            ConfigurationError: the hub, or a partition, is not there, a checkpoint that is needed
                is missing, or a range ends before it begins.
            DataLossError: a range begins before the first retained event or behind the end, or a
                partition that has a checkpoint is gone.
            HubUnavailableError: the hub did not answer in time.
        """
        timeout = settings.operation_timeout
        found = self._found(address, stored, timeout)
        if needed is not None:
            require_checkpoints(needed, stored, found)
        if self.partition_ids is None:
            report_gone(address, stored, found, settings)
        begins = {
            one: after(one, stored[one]) if one in stored else self.start.of(one) for one in found
        }
        ends = {one: self.until.of(one) for one in found}
        starts = resolve(address, begins, found, timeout)
        untils = resolve(address, ends, found, timeout)
        for one in stored.keys() & found.keys():
            if starts[one] <= found[one].next_sequence_number:
                # A checkpoint behind `until` is no mistake: all that was wanted is done.
                untils[one] = max(starts[one], untils[one])
        require_order(starts, untils, found)
        ranges = [
            retained(address, settings, found[one], starts[one], untils[one]) for one in found
        ]
        return Plan([one for one in ranges if not one.is_empty], passed(begins, found))

    def _found(
        self, address: Address, expected: Iterable[str], timeout: float
    ) -> Mapping[str, PartitionProperties]:
        """What the partitions hold that are read, in numeric order."""
        if self.partition_ids is None:
            found = partition_properties(address, expected=expected, timeout=timeout)
        else:
            present = list_partitions(address, timeout=timeout)
            if absent := sorted(set(self.partition_ids) - set(present), key=int):
                raise ConfigurationError(
                    f"{address} has no partition {', '.join(absent)}; it has {', '.join(present)}"
                )
            found = partition_properties(address, self.partition_ids, timeout=timeout)
        for places in (self.start, self.until):
            places.require(found)
        return found


def report_gone(
    address: Address,
    stored: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, PartitionProperties],
    settings: ReadSettings,
) -> None:
    """Report every partition that has a checkpoint and is not there."""
    for one in sorted(stored.keys() - found.keys()):
        number = stored[one].get("sequence_number") or 0
        report(partition_gone(address, one, number + 1, found), settings)


def require_order(
    starts: Mapping[str, int],
    untils: Mapping[str, int],
    found: Mapping[str, PartitionProperties],
) -> None:
    """Refuse a range that ends before it begins; one that begins behind the end is `retained`'s."""
    for one, properties in found.items():
        if untils[one] < starts[one] <= properties.next_sequence_number:
            raise ConfigurationError(
                f"partition {one}: start= is sequence number {starts[one]} there and until= "
                f"is {untils[one]}; the range ends before it begins"
            )


def passed(
    begins: Mapping[str, EventPosition], found: Mapping[str, PartitionProperties]
) -> dict[str, Place]:
    """The last event of each partition that begins at its end and has had one."""
    return {
        one: Place(found[one].next_sequence_number - 1, found[one].last_enqueued_offset or None)
        for one, begin in begins.items()
        if begin.is_end_of_stream and found[one].next_sequence_number > 0
    }


def wanted_of(
    partition_ids: Iterable[str | int] | None,
    start: Where | Mapping[str, Where],
    until: Where | Mapping[str, Where],
) -> Wanted:
    """What a user has asked for, checked as far as that needs no hub.

    Raises:
        ConfigurationError: a position or a partition id is none.
    """
    partitions = None if partition_ids is None else checked_partitions(partition_ids)
    return Wanted(partitions, Places.checked("start", start), Places.checked("until", until))
