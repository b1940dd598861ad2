"""Plan of a read: from positions and checkpoints to ranges that the hub retains."""

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self, get_args

from eventhub_checkpoints._shared.fields import whole_number
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, DataLossError
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.hub import (
    ask_each,
    first_event,
    list_partitions,
    partition_properties,
)
from eventhub_checkpoints.receive.position import (
    POSITIONS,
    EventPosition,
    after,
    checked_partitions,
    position_of,
)
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.records import Scope

_LOGGER = logging.getLogger(__name__)


def retained(
    address: Address, settings: ReadSettings, found: PartitionProperties, start: int, end: int
) -> OffsetRange:
    """Return the range, adjusted to what the partition retains.

    With `failOnDataLoss=false` a start that the hub does not have moves to the first retained
    event, and an end behind the last event moves to the last one, each with a warning.

    Raises:
        DataLossError: the hub does not have the range, and data loss is an error.
        ConfigurationError: the range ends before it begins.
    """
    first, following = found.first_sequence_number, found.next_sequence_number
    if start < first and start < end:
        report(expired(address, start, found), settings)
        start, end = first, max(first, end)
    elif start > following:
        report(ahead_of_end(address, start, found), settings)
        start = first
    if end > following:
        report(ahead_of_end(address, end, found), settings)
        end = following
    return OffsetRange(found.partition_id, start, end)


def report(loss: DataLossError, settings: ReadSettings) -> None:
    """Raise data loss, or log it and continue, as the settings say."""
    if settings.fail_on_data_loss:
        raise loss
    _LOGGER.warning("%s", loss)


GO_ON = "failOnDataLoss=false (without Spark ReadSettings(fail_on_data_loss=False))"


def expired(address: Address, wanted: int, found: PartitionProperties) -> DataLossError:
    """Return the error for an event dropped by the hub's retention."""
    return DataLossError(
        found.partition_id,
        wanted,
        found.first_sequence_number,
        f"partition {found.partition_id} of {address}: sequence number {wanted} has expired; the "
        f"first retained is {found.first_sequence_number}, so "
        f"{found.first_sequence_number - wanted} events are lost. Start from 'earliest', or set "
        f"{GO_ON} to go on with what is left",
    )


def ahead_of_end(address: Address, wanted: int, found: PartitionProperties) -> DataLossError:
    """Return the error for a position behind the last event: the hub was probably re-created."""
    return DataLossError(
        found.partition_id,
        wanted,
        found.first_sequence_number,
        f"partition {found.partition_id} of {address}: sequence number {wanted} lies behind the "
        f"end of the partition, whose next event gets {found.next_sequence_number}. Was the hub "
        "deleted and created again? Then its checkpoints belong to the old one: reset them, start "
        f"from 'earliest', or set {GO_ON} to read the new one from its first event. A range or "
        "position of yours may be of another hub",
    )


def partition_gone(
    address: Address, partition_id: str, wanted: int, found: Iterable[str]
) -> DataLossError:
    """Return the error for a missing partition: the hub was re-created with fewer."""
    return DataLossError(
        partition_id,
        wanted,
        0,
        f"{address} has no partition {partition_id} any more, it has {', '.join(found)}. Was the "
        "hub deleted and created again? Then its checkpoints belong to the old one: reset them, "
        f"or set {GO_ON} to go on with the partitions that are there",
    )


def resolve(
    address: Address,
    positions: Mapping[str, EventPosition],
    found: Mapping[str, PartitionProperties],
    timeout: float,
) -> dict[str, int]:
    """Return each position as the sequence number of the first event to read.

    Raises:
        HubUnavailableError: an offset or time had to be looked up, and no event arrived in time.
    """
    known = {one: at_hand(positions[one], found[one]) for one in positions}
    asked = look_up_each(address, positions, unresolved(known), timeout)
    return {one: asked[one] if number is None else number for one, number in known.items()}


def unresolved(known: Mapping[str, int | None]) -> list[str]:
    """Return the partitions without a number."""
    return [partition for partition, number in known.items() if number is None]


def look_up_each(
    address: Address,
    positions: Mapping[str, EventPosition],
    partitions: Iterable[str],
    timeout: float,
) -> dict[str, int]:
    """Return the sequence numbers of the first events that the hub delivers at the positions."""

    def look_up(one: str) -> int:
        position = positions[one]
        start = position.enqueued_time or position.offset or ""
        return first_event(address, one, start, position.inclusive, timeout)

    return ask_each(
        partitions, look_up, timeout + 1, told=lambda ids: f"partition {ids} of {address}"
    )


def at_hand(position: EventPosition, found: PartitionProperties) -> int | None:
    """Return the sequence number if the partition's properties are enough to know it; else None.

    Positions behind the last event must be resolved here: a receiver would wait for ever.
    """
    if position.sequence_number is not None:
        return position.sequence_number
    if position.is_start_of_stream:
        return found.first_sequence_number
    if position.is_end_of_stream or found.is_empty:
        return found.next_sequence_number
    if position.enqueued_time is not None:
        last = found.last_enqueued_time
        behind = last is not None and position.enqueued_time > last
        return found.next_sequence_number if behind else None
    if position.offset == found.last_enqueued_offset:
        return found.next_sequence_number - position.inclusive
    return None


Missing = Literal["start", "error"]
"""How to treat a partition without a checkpoint: it begins at the start position, or is an
error."""

SHOWN, SHOWN_LENGTH = 10, 300
"""Maximum number of scopes listed in a message, and of characters of each."""


def checked_missing(name: str, value: object) -> Missing:
    """Return the value itself.

    Raises:
        ConfigurationError: it is not one of the two; `name` is the setting it came from.
    """
    choices: tuple[Missing, ...] = get_args(Missing)
    for choice in choices:
        if value == choice:
            return choice
    raise ConfigurationError(f"{name} is {quoted(value)}; expected 'start' or 'error'")


def without_checkpoints(scope: Scope, held: Sequence[Scope] | None) -> str:
    """Return a message that a store has no checkpoint of a scope, and which scopes it has.

    Args:
        scope: the scope that was read.
        held: the scopes in the store; None where it cannot list them.
    """
    sentence = f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)}"
    if held is None:
        return sentence
    others = [one for one in held if str(one).casefold() != str(scope).casefold()]
    if not others:
        return f"{sentence}, and holds no other hub or consumer group"
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    listed = ", ".join(quoted(str(one), SHOWN_LENGTH) for one in others[:SHOWN])
    return f"{sentence}; it holds {listed}{more}. Is a name misspelt?"


def require_checkpoints(
    scope: Scope, stored: Container[str], found: Mapping[str, PartitionProperties]
) -> None:
    """Refuse partitions without a checkpoint, except those that never had an event.

    Args:
        scope: whose checkpoints.
        stored: partitions that have one.
        found: properties of the partitions being read.

    Raises:
        ConfigurationError: there are such partitions.
    """
    absent = [
        one for one, held in found.items() if one not in stored and held.next_sequence_number > 0
    ]
    if absent:
        raise ConfigurationError(
            f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)} for partition "
            f"{', '.join(absent)}, and missing='error' is set"
        )


Where = str | int | datetime | EventPosition
"""`"earliest"`, `"latest"`, a time, an `EventPosition`, or the sequence number of an event: the
first one read, or as an end the first one not read."""

EXPECTED = f"a sequence number, {POSITIONS}, or a dict of these by partition id"


class Place(NamedTuple):
    """Sequence number and offset of an event, as in a checkpoint."""

    sequence_number: int
    offset: str | None


@dataclass(frozen=True, slots=True)
class Places:
    """One position for all partitions, or one for each.

    Attributes:
        name: of the argument, for errors.
        positions: by partition id; None where `everywhere` applies to all.
    """

    name: str
    everywhere: EventPosition | None
    positions: Mapping[str, EventPosition] | None = None

    @classmethod
    def checked(cls, name: str, given: Where | Mapping[str, Where]) -> Self:
        """Parse a user's value.

        Raises:
            ConfigurationError: it is not a position, or a time without a zone.
        """
        if not isinstance(given, Mapping):
            return cls(name, place_of(name, given))
        texts = {str(partition): place_of(name, where) for partition, where in given.items()}
        return cls(name, None, {one: texts[one] for one in checked_partitions(texts)})

    def require(self, partition_ids: Iterable[str]) -> None:
        """Refuse a position of a partition that is not read; its id may be misspelt."""
        if unread := (self.positions or {}).keys() - set(partition_ids):
            raise ConfigurationError(
                f"{self.name} names partition {', '.join(sorted(unread, key=int))}, which is not "
                f"among those that are read: {', '.join(partition_ids)}"
            )

    def of(self, partition_id: str) -> EventPosition:
        """Return the position of one partition.

        Raises:
            ConfigurationError: there are positions by partition, but none for this one.
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
    """Return the position that one value denotes; raises as `position_of`."""
    number = whole_number(given)
    if number is not None:
        return EventPosition.from_sequence_number(number, inclusive=True)
    return position_of(given, f"for {name}= {EXPECTED}")


class Plan(NamedTuple):
    """Ranges to read.

    Attributes:
        ranges: of the partitions that have anything to read.
        passed: the last event of each partition that begins at its end, as `start` says; it counts
            as handed out.
    """

    ranges: list[OffsetRange]
    passed: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Partitions to read, with start and end.

    Attributes:
        partition_ids: None for all partitions of the hub.
        start: where a partition without a checkpoint begins.
        until: the first event of each partition that is not read.
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
        """Resolve everything that changes over time, by querying the hub once.

        Args:
            address: the hub.
            stored: checkpoints by partition id; they take precedence over `start`.
            settings: how the ranges will be read.
            needed: the scope in which every partition must have a checkpoint; None if none must.

        Raises:
            ConfigurationError: the hub or a partition does not exist, a required checkpoint is
                missing, or a range ends before it begins.
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
                # A checkpoint behind `until` is not a mistake: the wanted range was read already.
                untils[one] = max(starts[one], untils[one])
        require_order(starts, untils, found)
        ranges = [
            retained(address, settings, found[one], starts[one], untils[one]) for one in found
        ]
        return Plan([one for one in ranges if not one.is_empty], passed(begins, found))

    def _found(
        self, address: Address, expected: Iterable[str], timeout: float
    ) -> Mapping[str, PartitionProperties]:
        """Return the properties of the partitions to read, in numeric order."""
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
    """Report every partition that has a checkpoint and no longer exists."""
    for one in sorted(stored.keys() - found.keys()):
        number = stored[one].get("sequence_number") or 0
        report(partition_gone(address, one, number + 1, found), settings)


def require_order(
    starts: Mapping[str, int],
    untils: Mapping[str, int],
    found: Mapping[str, PartitionProperties],
) -> None:
    """Refuse a range that ends before it begins; `retained` handles one behind the hub's end."""
    for one, properties in found.items():
        if untils[one] < starts[one] <= properties.next_sequence_number:
            raise ConfigurationError(
                f"partition {one}: start= is sequence number {starts[one]} there and until= "
                f"is {untils[one]}; the range ends before it begins"
            )


def passed(
    begins: Mapping[str, EventPosition], found: Mapping[str, PartitionProperties]
) -> dict[str, Place]:
    """Return the last event of each partition whose start is its end and that has had one."""
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
    """Return the user's values as `Wanted`, checked as far as possible without a hub.

    Raises:
        ConfigurationError: a position or a partition id is invalid.
    """
    partitions = None if partition_ids is None else checked_partitions(partition_ids)
    return Wanted(partitions, Places.checked("start", start), Places.checked("until", until))
