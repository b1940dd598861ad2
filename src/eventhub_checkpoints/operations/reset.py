"""Plan of a reset: from where a group is to read, and what to store for that.

A number names the event that is read next, as for `kafka-consumer-groups`; stored is the number
before it, as a checkpoint names the last processed event.

Source: Apache Kafka, `tools/consumer/group/ConsumerGroupCommand.java`, `--reset-offsets`: the
goals, the limits, and what happens without a committed offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from eventhub_checkpoints._shared.offset_words import START_OF_STREAM
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.times import before_now, parse_time
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.groups import Group, in_order
from eventhub_checkpoints.operations.lag import Missing, next_retained
from eventhub_checkpoints.operations.peek import has_event_since
from eventhub_checkpoints.operations.positions import Position, positions_of
from eventhub_checkpoints.operations.recorded_change import GroupChange
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    OpenStream,
    PartitionProperties,
    checked_group,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import (
    ask_each,
    first_event,
    partition_properties,
    read_each,
)
from eventhub_checkpoints.receive.position import EventPosition, signed_number
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.reader import RangeReader


@dataclass(frozen=True, slots=True)
class Shift:
    """Goal of a reset: so many events after the present position, or before it if negative."""

    by: int


Goal = Literal["earliest", "latest", "current"] | int | Shift | datetime | Mapping[str, int]
"""Goal of a reset.

An int is the event read next in every partition, a mapping in each of its partitions; a datetime
with a time zone means the first event that was enqueued then or later.
"""


KINDS = ("earliest", "latest", "current", "sequence_number", "shift", "datetime", "duration")
"""Kinds of goals that people name; the last four have a value."""


def goal_of(kind: str, value: str = "") -> Goal:
    """Return the goal of a kind.

    Args:
        kind: one of `KINDS`.
        value: a number, a time, or a duration before now; see `docs/reference/times.md`.

    Raises:
        ConfigurationError: there is no such kind, or the value is not one of it.
    """
    match kind:
        case "earliest" | "latest" | "current":
            return kind
        case "datetime":
            return parse_time(value)
        case "duration":
            return before_now(value)
        case "sequence_number" | "shift":
            number = signed_number(value)
            if number is None:
                raise ConfigurationError(
                    f"the {kind.replace('_', ' ')} is {quoted(value)}; expected digits"
                )
            if kind == "shift":
                return Shift(number)
            if number < 0:
                raise ConfigurationError(f"the sequence number is {number}; expected 0 or more")
            return number
    raise ConfigurationError(f"the goal is {quoted(kind)}; expected {', '.join(KINDS)}")


def address_for_reading(hub: HubAddress, group: Group, through: str | None) -> HubAddress:
    """Return a hub as read by the consumer group through which single events are read.

    Args:
        hub: as read by the group that is reset.
        group: that group; while it has consumers, the hub refuses other readers in it.
        through: the group that the operator named for this; None: none.

    Raises:
        ConfigurationError: `through` is not the name of a consumer group.
    """
    name = through or (DEFAULT_CONSUMER_GROUP if group.is_owned else hub.consumer_group)
    return replace(hub, consumer_group=checked_group("consumer_group", name))


@dataclass(frozen=True, slots=True)
class PartitionReset:
    """Plan for one partition.

    Attributes:
        begin: sequence number of the first retained event; `last + 1` if none is retained.
        last: sequence number of the newest event; -1 if there never was one.
        before: the stored position; None if none is stored.
        old: event that the group would read next; None if it is unknown.
        new: event that the group is to read next.
        after: position to store.
        needs_offset: whether the offset of `after` has to be read from the hub.
        note: what the operator should know; `""` if nothing.
    """

    partition_id: str
    begin: int
    last: int
    before: Position | None
    old: int | None
    new: int
    after: Position
    needs_offset: bool = False
    note: str = ""

    @property
    def read_again(self) -> int | None:
        """Return the number of retained events that are read again; None if unknown."""
        return None if self.old is None else max(0, self.old - self.new)

    @property
    def skipped(self) -> int | None:
        """Return the number of retained events that are not read; None if unknown."""
        return None if self.old is None else max(0, self.new - self.old)

    def with_offset(self, offset: str) -> "PartitionReset":
        """Return the plan with the offset of the event that is stored as processed."""
        note = "" if offset else f"event {self.new - 1} does not exist: no offset"
        return replace(
            self,
            after=Position(self.after.sequence_number, offset),
            needs_offset=False,
            note="; ".join(filter(None, [self.note, note])),
        )


def old_next(
    position: Position | None, begin: int, last: int, missing: Missing = "earliest"
) -> int | None:
    """Return the retained event that a group would read next, counted as its lag is.

    None if the position holds an offset only, or is closed.
    """
    if position is not None and position.next is None:
        return None
    number = None if position is None else position.sequence_number
    return next_retained(number, begin, last, missing)


def goal_number(
    goal: Goal, partition_id: str, begin: int, last: int, before: Position | None
) -> int:
    """Return the event that a goal names, which need not exist.

    Raises:
        ConfigurationError: it depends on a position that is not stored or has no sequence number.
    """
    if goal == "earliest":
        return begin
    if goal == "latest":
        return last + 1
    if isinstance(goal, int):
        return goal
    if isinstance(goal, Mapping):
        return goal[partition_id]
    if before is None and goal == "current":
        return last + 1
    if before is None or before.next is None:
        stored = "no checkpoint" if before is None else "a checkpoint without a sequence number"
        if before and before.is_closed:
            stored = "a closed checkpoint, because it was moved to or from another store"
        raise ConfigurationError(
            f"partition {partition_id} has {stored}, so there is no position to start from; leave "
            "it out with --partitions, or choose another target"
        )
    return before.next + goal.by if isinstance(goal, Shift) else before.next


def plan_partition(
    goal: Goal,
    properties: PartitionProperties,
    before: Position | None,
    missing: Missing = "earliest",
) -> PartitionReset:
    """Plan the reset of one partition.

    Args:
        goal: not a datetime, which `numbers_at` resolves.
        properties: of the partition.
        before: the stored position; None if none is stored.
        missing: where consumers start without a checkpoint.

    Raises:
        ConfigurationError: see `goal_number`.
    """
    id_ = properties.partition_id
    begin, last = properties.first_sequence_number, properties.next_sequence_number - 1
    number = goal_number(goal, id_, begin, last, before)
    new = min(max(number, begin), last + 1)
    notes = []
    if number < begin:
        notes.append(f"{number} is below the first event")
    if number > last + 1:
        notes.append(f"{number} is above the last event")
    if before is None and goal == "current":
        notes.append("no checkpoint: latest")
    if before and before.is_closed:
        notes.append(f"closed by {as_typed('move')}: another store has the position")
    offset, needs_offset = "", False
    if new == begin and goal != "latest":
        # The event before it is not retained, so nothing else would be a valid offset.
        offset = START_OF_STREAM
    elif new > last:
        offset = properties.last_enqueued_offset or START_OF_STREAM
    else:
        needs_offset = True
    return PartitionReset(
        id_,
        begin,
        last,
        before,
        old_next(before, begin, last, missing),
        new,
        Position(new - 1, offset),
        needs_offset,
        "; ".join(notes),
    )


def plan_reset(
    goal: Goal,
    group: Group,
    hub: Address,
    partition_ids: Sequence[str] = (),
    *,
    before: Mapping[str, Position | None] | None = None,
    missing: Missing = "earliest",
    timeout: float = OPERATION_TIMEOUT,
) -> list[PartitionReset]:
    """Plan the reset of a group; reads the hub, and changes nothing.

    Args:
        goal: from where the group is to read.
        group: the group.
        hub: the hub, with the consumer group through which events are read.
        partition_ids: default: those that the goal names, else all of the hub.
        before: positions from which the plan starts, instead of the stored ones.
        missing: where consumers start without a checkpoint.
        timeout: seconds for each kind of query.

    Raises:
        ConfigurationError: the hub has no such partition; see also `goal_number`; or events would
            have to be read through a group whose partitions are held by its consumers.
    """
    properties = partition_properties(hub, expected=group.partition_ids, timeout=timeout)
    named = [*(goal if isinstance(goal, Mapping) and not partition_ids else partition_ids)]
    chosen = in_order(named or properties)
    check_partitions(chosen, properties, goal, hub)
    stored: Mapping[str, Position | None] = {**positions_of(group), **(before or {})}
    asked_for = {id_: properties[id_] for id_ in chosen}
    is_time = isinstance(goal, datetime)
    if isinstance(goal, datetime):
        goal = numbers_at(hub, group, asked_for, goal, timeout)
    plans = [plan_partition(goal, asked_for[id_], stored.get(id_), missing) for id_ in chosen]
    if is_time:
        plans = [
            replace(plan, note="no event since then") if plan.new > plan.last else plan
            for plan in plans
        ]
    numbers = {plan.partition_id: plan.new - 1 for plan in plans if plan.needs_offset}
    check_readable(hub, group, numbers)
    offsets = offsets_of(hub, numbers, timeout)
    return [
        plan.with_offset(offsets[plan.partition_id]) if plan.needs_offset else plan
        for plan in plans
    ]


def plan_through(
    goal: Goal,
    group: Group,
    hub: HubAddress,
    partition_ids: Sequence[str] = (),
    *,
    through: str | None,
    before: Mapping[str, Position | None] | None = None,
    missing: Missing = "earliest",
    timeout: float = OPERATION_TIMEOUT,
) -> list[PartitionReset]:
    """Plan the reset of a group, through a consumer group that the hub admits; see `plan_reset`.

    Args:
        goal: from where the group is to read.
        group: the group.
        hub: as read by the group.
        partition_ids: see `plan_reset`.
        through: consumer group through which single events are read; None: the group itself, or
            `$Default` while it has consumers.
        before: see `plan_reset`.
        missing: where consumers start without a checkpoint.
        timeout: seconds for each kind of query.
    """
    reader = address_for_reading(hub, group, through)
    return plan_reset(
        goal, group, reader, partition_ids, before=before, missing=missing, timeout=timeout
    )


def plan_change(
    change: GroupChange,
    goal: Goal,
    hub: HubAddress,
    partition_ids: Sequence[str] = (),
    *,
    through: str | None = None,
    missing: Missing = "earliest",
    timeout: float = OPERATION_TIMEOUT,
) -> list[PartitionReset]:
    """Plan the reset of a group by a command, which continues its interrupted attempt.

    Args:
        change: the group.
        goal: from where it is to read.
        hub: as read by the group.
        partition_ids: see `plan_reset`.
        through: see `plan_through`.
        missing: where consumers start without a checkpoint.
        timeout: seconds for each kind of query.

    Raises:
        GroupActiveError: the group has live members, whose partitions may not be taken.
        ConfigurationError, HubUnavailableError: see `plan_reset`.
    """
    change.refuse_active()
    return plan_through(
        goal,
        change.group,
        hub,
        partition_ids,
        through=through,
        before=change.before,
        missing=missing,
        timeout=timeout,
    )


def changes_of(plan: Sequence[PartitionReset], group: Group) -> dict[str, Position]:
    """Return the positions to store, by partition.

    A running consumer may read ahead of its checkpoint, so its partition is stored even where the
    position stays the same.
    """
    return {
        each.partition_id: each.after
        for each in plan
        if group.is_owned or each.before != each.after
    }


def check_partitions(
    chosen: Sequence[str],
    properties: Mapping[str, PartitionProperties],
    goal: Goal,
    hub: Address,
) -> None:
    """Check that the hub and the goal have the partitions of a plan.

    Raises:
        ConfigurationError: one of them does not.
    """
    if unknown := [id_ for id_ in chosen if id_ not in properties]:
        raise ConfigurationError(
            f"{hub} has no partition {quoted(unknown[0])}; it has {', '.join(properties)}"
        )
    if isinstance(goal, Mapping) and (absent := [id_ for id_ in chosen if id_ not in goal]):
        raise ConfigurationError(
            f"the file has no line for partition {absent[0]}; leave {absent[0]} out of --partitions"
        )


def check_readable(hub: Address, group: Group, partition_ids: Iterable[str]) -> None:
    """Check that events can be read through the consumer group of `hub`.

    The service refuses a receiver without an owner level while a partition has one with it, as
    those of consumers with a checkpoint store are.

    Raises:
        ConfigurationError: a consumer holds one of the partitions.
    """
    if hub.scope().folded != group.scope.folded:
        return
    live = group.live_owners
    for id_ in partition_ids:
        if id_ in live:
            raise ConfigurationError(
                f"an event of partition {id_} has to be read, and {live[id_]!r} holds the "
                f"partition in consumer group {hub.consumer_group}; name another consumer group "
                "with --through"
            )


def numbers_at(
    hub: Address,
    group: Group,
    properties: Mapping[str, PartitionProperties],
    moment: datetime,
    timeout: float,
) -> dict[str, int]:
    """Return the first event of each partition that was enqueued at a time or later.

    If there is none, it is the next one to be enqueued.

    Raises:
        ConfigurationError: `moment` has no time zone, or a consumer holds a partition.
    """
    since = EventPosition.from_enqueued_time(moment).enqueued_time
    assert since is not None
    ends = {
        id_: each.next_sequence_number
        for id_, each in properties.items()
        if not has_event_since(each, since)
    }
    asked = [id_ for id_ in properties if id_ not in ends]
    check_readable(hub, group, asked)
    return ends | ask_each(
        asked,
        lambda id_: first_event(hub, id_, since, True, timeout),
        # A query that ends in time gives the better message.
        timeout + 1,
        describe=lambda silent: f"partition {silent} of {hub}",
    )


def offsets_of(hub: Address, numbers: Mapping[str, int], timeout: float) -> dict[str, str]:
    """Return the offset of one event of each partition; `""` if the event does not exist.

    Args:
        hub: the hub.
        numbers: sequence number by partition id.
        timeout: seconds for everything together.

    Raises:
        HubUnavailableError: the hub did not deliver an event that it holds.
    """
    settings = ReadSettings(
        rows_per_batch=1,
        prefetch=1,
        receiver_timeout=timeout / 2,
        operation_timeout=timeout,
        fail_on_data_loss=False,
    )

    def read(partition_id: str, open_stream: OpenStream) -> str:
        number = numbers[partition_id]
        offsets = OffsetRange(partition_id, number, number + 1)
        reader = RangeReader(hub, offsets, settings, open_stream)
        with closing(reader.parts()) as parts:
            for columns in parts:
                for offset in columns.offsets:
                    return offset.decode() if isinstance(offset, bytes) else offset or ""
        return ""

    return read_each(hub, numbers, read, timeout + 1)
