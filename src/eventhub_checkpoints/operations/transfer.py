"""Positions on their way from one store to another, and the rule of what is copied."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventhub_checkpoints.operations.groups import CLOSED_NUMBER, in_order
from eventhub_checkpoints.operations.positions import MOVED_PREFIX, WAITING, Position

NO_POSITION = f"{MOVED_PREFIX}none"

CLOSED_WAITING = Position(CLOSED_NUMBER, WAITING)
"""Closed checkpoint of a store that will receive the position."""


def closed_with(position: Position | None) -> Position:
    """Return the closed checkpoint of a store that gives the position away, and keeps a copy."""
    if position is None:
        return Position(CLOSED_NUMBER, NO_POSITION)
    return Position(CLOSED_NUMBER, f"{MOVED_PREFIX}{position.sequence_number}:{position.offset}")


def position_in(closed: Position) -> Position | None:
    """Return the position that a closed checkpoint of `closed_with` has; None if there was none."""
    if closed.offset == NO_POSITION:
        return None
    number, _, offset = closed.offset.removeprefix(MOVED_PREFIX).partition(":")
    return Position(int(number), offset)


class Action(StrEnum):
    """What is done with one partition.

    Attributes:
        COPY: the source is ahead, the target has no checkpoint, or the operator forces it.
        REWIND: the source went back, and the target follows it.
        EQUAL: the target has the same position.
        NEWER: the target is ahead of the source, and is left alone.
        OWNED: a live consumer owns the partition at the target, which is left alone.
        NO_NUMBER: the source has an offset only, and a store needs a sequence number.
        UNCLEAR: the target has an offset only, which may be ahead, and is left alone.
        CLOSED: the partition was moved to or from another store: a closed row is not a position.
    """

    COPY = "copy"
    REWIND = "rewind"
    EQUAL = "equal"
    NEWER = "newer"
    OWNED = "owned"
    NO_NUMBER = "no number"
    UNCLEAR = "unclear"
    CLOSED = "closed"

    @property
    def writes(self) -> bool:
        """Return whether the target is written."""
        return self in (Action.COPY, Action.REWIND)


@dataclass(frozen=True, slots=True)
class Step:
    """Decision for one partition.

    Attributes:
        partition_id: the partition.
        action: what is done with it.
        source: position at the source.
        target: position at the target; None if it has none.
    """

    partition_id: str
    action: Action
    source: Position
    target: Position | None


def decide(
    source: Position,
    target: Position | None,
    copied: Position | None = None,
    *,
    is_owned: bool = False,
    force: bool = False,
) -> Action:
    """Return what to do with a partition that has a checkpoint at the source.

    The target is never overwritten by an older position, with one exception, the rewind: the source
    has gone back, and the target still has the position that was last copied, so nobody else has
    written it since. A source that was lower from the beginning is not a rewind.

    Args:
        source: position at the source.
        target: position at the target; None if it has none.
        copied: position that was last copied to the target; None if nothing was copied.
        is_owned: whether a live consumer owns the partition at the target.
        force: overwrite whatever the target has.
    """
    if source.is_closed or (target and target.is_closed and not force):
        return Action.CLOSED
    if target is not None and is_same(source, target, exactly=force):
        return Action.EQUAL
    if is_owned:
        return Action.OWNED
    if source.sequence_number is None:
        return Action.NO_NUMBER
    if target is None or force:
        return Action.COPY
    if target.sequence_number is None:
        return Action.UNCLEAR
    if source.sequence_number >= target.sequence_number:
        return Action.COPY
    return Action.REWIND if target == copied else Action.NEWER


def is_same(source: Position, target: Position, *, exactly: bool = False) -> bool:
    """Return whether the target has the position; an offset that only the source has differs.

    Args:
        source: position at the source.
        target: position at the target.
        exactly: whether two different offsets of the same number differ, too.
    """
    if source.sequence_number is None or target.sequence_number is None:
        return source == target
    has_offset = bool(target.offset) and not exactly
    return source.sequence_number == target.sequence_number and (
        has_offset or source.offset in ("", target.offset)
    )


def plan(
    source: Mapping[str, Position],
    target: Mapping[str, Position],
    owned: Collection[str] = (),
    copied: Mapping[str, Position] | None = None,
    *,
    force: bool = False,
) -> list[Step]:
    """Return the decision for every partition of the source, in numeric order.

    Args:
        source: positions by partition id.
        target: positions by partition id.
        owned: partitions with a live owner at the target.
        copied: what was copied to the target before, by partition id.
        force: overwrite whatever the target has.
    """
    steps = []
    for id_ in in_order(source):
        at_source, at_target, last_copied = source[id_], target.get(id_), (copied or {}).get(id_)
        action = decide(at_source, at_target, last_copied, is_owned=id_ in owned, force=force)
        steps.append(Step(id_, action, at_source, at_target))
    return steps
