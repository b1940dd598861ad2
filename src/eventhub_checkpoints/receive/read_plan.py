"""Plan of a read: from positions and checkpoints to ranges that the hub retains."""

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, DataLossError
from eventhub_checkpoints.receive import hub
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.position import (
    POSITIONS,
    EventPosition,
    after,
    checked_partitions,
    position_of,
)
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.records import Scope, whole_number

log = logging.getLogger(__name__)

Properties = Mapping[str, PartitionProperties]
"""Properties of the partitions being read, by partition id."""


def retained(
    address: Address, settings: ReadSettings, properties: PartitionProperties, start: int, end: int
) -> OffsetRange:
    """Return the range, adjusted to what the partition retains.

    With `failOnDataLoss=false` a start that the hub does not have moves to the first retained
    event, and an end after the last event moves to the last one, each with a warning.

    Raises:
        DataLossError: the hub does not have the range, and data loss is an error.
        ConfigurationError: the range ends before it begins.
    """
    first, following = properties.first_sequence_number, properties.next_sequence_number
    if start < first and start < end:
        report(expired(address, start, properties, end), settings)
        start, end = first, max(first, end)
    elif start > following:
        report(ahead_of_end(address, start, properties), settings)
        start = first
    if end > following:
        report(ahead_of_end(address, end, properties), settings)
        end = following
    return OffsetRange(properties.partition_id, start, end)


def retained_start(
    address: Address, settings: ReadSettings, properties: PartitionProperties, start: int
) -> int:
    """Return the start of a read without an end, adjusted to what the partition retains.

    Raises:
        DataLossError: the hub does not have it, and data loss is an error.
    """
    first = properties.first_sequence_number
    if start < first:
        report(expired(address, start, properties), settings)
    elif start > properties.next_sequence_number:
        report(ahead_of_end(address, start, properties), settings)
    else:
        return start
    return first


def report(loss: DataLossError, settings: ReadSettings) -> None:
    """Raise data loss, or log it and continue, as the settings say."""
    if settings.fail_on_data_loss:
        raise loss
    log.warning("%s", loss)


GO_ON = "failOnDataLoss=false (outside Spark: fail_on_data_loss=False)"


def expired(
    address: Address, number: int, properties: PartitionProperties, until: int | None = None
) -> DataLossError:
    """Return the error for events dropped by the hub's retention.

    Args:
        address: the hub.
        number: sequence number of the first of them.
        properties: of their partition.
        until: where the range that is read ends; later events are not counted. None: it has no end.
    """
    partition_id, first = properties.partition_id, properties.first_sequence_number
    lost = (first if until is None else min(first, until)) - number
    return DataLossError(
        partition_id,
        number,
        first,
        f"partition {partition_id} of {address}: sequence number {number} has expired; the first "
        f"retained is {first}, so {lost} events are lost. Start from 'earliest', or set "
        f"{GO_ON} to go on with what is left",
    )


def ahead_of_end(address: Address, number: int, properties: PartitionProperties) -> DataLossError:
    """Return the error for a position after the last event: the hub was probably re-created."""
    return DataLossError(
        properties.partition_id,
        number,
        properties.first_sequence_number,
        f"partition {properties.partition_id} of {address}: sequence number {number} lies beyond "
        f"the end of the partition, whose next event gets {properties.next_sequence_number}. Was "
        "the hub deleted and created again? Then its checkpoints belong to the old one: reset "
        f"them, start from 'earliest', or set {GO_ON} to read the new one from its first event. A "
        "range or position of yours may be of another hub",
    )


def created_again(
    address: Address, first: PartitionProperties, number: int, before: str, now: str
) -> DataLossError:
    """Return the error for a position in a hub that was deleted and created again.

    Args:
        address: the hub.
        first: of one of its partitions, for the attributes of the error.
        number: the position in that partition.
        before: when the hub of the position was created.
        now: when the present hub was created.
    """
    return DataLossError(
        first.partition_id,
        number,
        first.first_sequence_number,
        f"{address} was deleted and created again: the checkpoint is of the hub that was created "
        f"at {before}, and the present one was created at {now}, so its sequence numbers are those "
        "of other events. Start with a new checkpointLocation, or set failOnDataLoss=false to read "
        "the new hub from its first event",
    )


def partition_gone(
    address: Address, partition_id: str, number: int, present: Iterable[str]
) -> DataLossError:
    """Return the error for a missing partition: the hub was re-created with fewer."""
    return DataLossError(
        partition_id,
        number,
        0,
        f"{address} has no partition {partition_id} any more, it has {', '.join(present)}. Was the "
        "hub deleted and created again? Then its checkpoints belong to the old one: reset them, "
        f"or set {GO_ON} to go on with the partitions that are there",
    )


def resolve(
    address: Address,
    positions: Mapping[str, EventPosition],
    properties: Properties,
    timeout: float,
) -> dict[str, int]:
    """Return each position as the sequence number of the first event to read.

    Raises:
        HubUnavailableError: an offset or time had to be looked up, and no event arrived in time.
    """

    def look_up(partition_id: str) -> int:
        position = positions[partition_id]
        start = position.enqueued_time or position.offset or ""
        return hub.first_event(address, partition_id, start, position.inclusive, timeout)

    numbers = {id_: at_hand(position, properties[id_]) for id_, position in positions.items()}
    unknown = [id_ for id_, number in numbers.items() if number is None]
    looked_up = hub.ask_each(
        unknown, look_up, timeout + 1, describe=lambda ids: f"partition {ids} of {address}"
    )
    return {id_: looked_up[id_] if number is None else number for id_, number in numbers.items()}


def at_hand(position: EventPosition, properties: PartitionProperties) -> int | None:
    """Return the sequence number if the partition's properties are enough to know it; else None.

    Positions after the last event must be resolved here: a receiver would wait for ever.
    """
    if position.sequence_number is not None:
        return position.sequence_number
    if position.is_start_of_stream:
        return properties.first_sequence_number
    if position.is_end_of_stream or properties.is_empty:
        return properties.next_sequence_number
    if position.enqueued_time is not None:
        last = properties.last_enqueued_time
        is_behind = last is not None and position.enqueued_time > last
        return properties.next_sequence_number if is_behind else None
    if position.offset == properties.last_enqueued_offset:
        return properties.next_sequence_number - position.inclusive
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


def without_checkpoints(scope: Scope, stored: Sequence[Scope] | None) -> str:
    """Return a message that a store has no checkpoint of a scope, and which scopes it has.

    Args:
        scope: the scope that was read.
        stored: the scopes in the store; None where it cannot list them.
    """
    message = f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)}"
    if stored is None:
        return message
    others = [other for other in stored if str(other).casefold() != str(scope).casefold()]
    if not others:
        return f"{message}, and holds no other hub or consumer group"
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    listed = ", ".join(quoted(str(other), SHOWN_LENGTH) for other in others[:SHOWN])
    return f"{message}; it holds {listed}{more}. Is a name misspelt?"


def require_checkpoints(scope: Scope, stored: Container[str], properties: Properties) -> None:
    """Refuse partitions without a checkpoint, except those that never had an event.

    Args:
        scope: whose checkpoints.
        stored: partitions that have one.
        properties: of the partitions being read.

    Raises:
        ConfigurationError: there are such partitions.
    """
    absent = [
        partition_id
        for partition_id, partition in properties.items()
        if partition_id not in stored and partition.next_sequence_number > 0
    ]
    if absent:
        raise ConfigurationError(
            f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)} for partition "
            f"{', '.join(absent)}, which missing='error' requires; set missing='start' to begin at "
            "the start position"
        )


Where = str | int | datetime | EventPosition
"""`"earliest"`, `"latest"`, a time, an `EventPosition`, or the sequence number of an event: the
first one read, or as an end the first one not read."""

EXPECTED = f"a sequence number, {POSITIONS}, or a dict of these by partition id"


class CheckpointPosition(NamedTuple):
    """Sequence number and offset of an event, as in a checkpoint."""

    sequence_number: int
    offset: str | None


@dataclass(frozen=True, slots=True)
class PartitionPositions:
    """One position for all partitions, or one for each.

    Attributes:
        name: of the argument, for errors.
        positions: by partition id; None where `everywhere` applies to all.
    """

    name: str
    everywhere: EventPosition | None
    positions: Mapping[str, EventPosition] | None = None

    @classmethod
    def checked(cls, name: str, value: Where | Mapping[str, Where]) -> Self:
        """Parse a user's value.

        Raises:
            ConfigurationError: it is not a position, or a time without a zone.
        """

        def parsed(where: Where) -> EventPosition:
            number = whole_number(where)
            if number is not None:
                return EventPosition.from_sequence_number(number, inclusive=True)
            return position_of(where, f"for {name}= {EXPECTED}")

        if not isinstance(value, Mapping):
            return cls(name, parsed(value))
        positions = {str(partition): parsed(where) for partition, where in value.items()}
        return cls(name, None, {id_: positions[id_] for id_ in checked_partitions(positions)})

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
                f"{self.name} has no position for partition {partition_id}; add one, or pass the "
                "partitions to read as partition_ids="
            )
        return self.positions[partition_id]


class PlannedRanges(NamedTuple):
    """Ranges to read.

    Attributes:
        ranges: of the partitions that have anything to read.
        passed: the last event of each partition that begins at its end, as `start` says; it counts
            as handed out.
    """

    ranges: list[OffsetRange]
    passed: Mapping[str, CheckpointPosition]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Partitions to read, with start and end.

    Attributes:
        partition_ids: None for all partitions of the hub.
        start: where a partition without a checkpoint begins.
        until: the first event of each partition that is not read.
    """

    partition_ids: list[str] | None
    start: PartitionPositions
    until: PartitionPositions

    @classmethod
    def checked(
        cls,
        partition_ids: Iterable[str | int] | None,
        start: Where | Mapping[str, Where],
        until: Where | Mapping[str, Where],
    ) -> Self:
        """Parse the user's values, checked as far as possible without a hub.

        Raises:
            ConfigurationError: a position or a partition id is invalid.
        """
        partitions = None if partition_ids is None else checked_partitions(partition_ids)
        positions = PartitionPositions.checked
        return cls(partitions, positions("start", start), positions("until", until))

    def resolve(
        self,
        address: Address,
        stored: Mapping[str, Mapping[str, Any]],
        settings: ReadSettings,
        needed: Scope | None = None,
    ) -> PlannedRanges:
        """Resolve everything that changes over time, by querying the hub once.

        Args:
            address: the hub.
            stored: checkpoints by partition id; they take precedence over `start`.
            settings: how the ranges will be read.
            needed: the scope in which every partition must have a checkpoint; None if none must.

        Raises:
            ConfigurationError: the hub or a partition does not exist, a required checkpoint is
                missing, or a range ends before it begins.
            DataLossError: a range begins before the first retained event or beyond the end, or a
                partition that has a checkpoint is gone.
            HubUnavailableError: the hub did not answer in time.
        """
        timeout = settings.operation_timeout
        properties = self._properties(address, stored, timeout)
        if needed is not None:
            require_checkpoints(needed, stored, properties)
        if self.partition_ids is None:
            for id_ in sorted(stored.keys() - properties.keys()):
                number = stored[id_].get("sequence_number") or 0
                report(partition_gone(address, id_, number + 1, properties), settings)
        begins = {
            id_: after(id_, stored[id_]) if id_ in stored else self.start.of(id_)
            for id_ in properties
        }
        ends = {id_: self.until.of(id_) for id_ in properties}
        starts = resolve(address, begins, properties, timeout)
        untils = resolve(address, ends, properties, timeout)
        passed: dict[str, CheckpointPosition] = {}
        for id_, partition in properties.items():
            start, until, following = starts[id_], untils[id_], partition.next_sequence_number
            if id_ in stored and start <= following:
                # A checkpoint after `until` is not a mistake: the range was read already.
                until = max(start, until)
            if until < start <= following:
                raise ConfigurationError(
                    f"partition {id_}: start= is sequence number {start} and until= is {until}, so "
                    "the range ends before it begins; pass a later until="
                )
            if begins[id_].is_end_of_stream and following > 0:
                offset = partition.last_enqueued_offset or None
                passed[id_] = CheckpointPosition(following - 1, offset)
            untils[id_] = until
        ranges = [
            retained(address, settings, partition, starts[id_], untils[id_])
            for id_, partition in properties.items()
        ]
        return PlannedRanges([offsets for offsets in ranges if not offsets.is_empty], passed)

    def _properties(
        self, address: Address, expected: Iterable[str], timeout: float
    ) -> dict[str, PartitionProperties]:
        """Return the properties of the partitions to read, in numeric order."""
        properties = hub.partition_properties(
            address, self.partition_ids, expected=expected, timeout=timeout
        )
        for positions in (self.start, self.until):
            positions.require(properties)
        return properties
