"""Positions on their way from one store to another, and the rule of what is copied."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventhub_checkpoints.operations.positions import CLOSED_NUMBER, MOVED, WAITING, Position

NO_POSITION = f"{MOVED}none"

CLOSED_WAITING = Position(CLOSED_NUMBER, WAITING)
"""Closed checkpoint of a store that will receive the position."""


def closed_with(position: Position | None) -> Position:
    """Return the closed checkpoint of a store that gives the position away, and keeps a copy."""
    if position is None:
        return Position(CLOSED_NUMBER, NO_POSITION)
    return Position(CLOSED_NUMBER, f"{MOVED}{position.sequence_number}:{position.offset}")


def position_in(closed: Position) -> Position | None:
    """Return the position that a closed checkpoint of `closed_with` has; None if there was none."""
    if closed.offset == NO_POSITION:
        return None
    number, _, offset = closed.offset.removeprefix(MOVED).partition(":")
    return Position(int(number), offset)


class Action(StrEnum):
    """What is done with one partition.

    Attributes:
        COPY: the source is ahead, or the target has no checkpoint.
        REWIND: the source went back, and the target follows it.
        EQUAL: the target has the same position.
        NEWER: the target is ahead of the source, and is left alone.
        OWNED: a live consumer owns the partition at the target, which is left alone.
        NO_NUMBER: the source has an offset only, and a store needs a sequence number.
        CLOSED: the partition was moved to or from another store.
    """

    COPY = "copy"
    REWIND = "rewind"
    EQUAL = "equal"
    NEWER = "newer"
    OWNED = "owned"
    NO_NUMBER = "no number"
    CLOSED = "closed"

    @property
    def writes(self) -> bool:
        """Return whether the target is written."""
        return self in (Action.COPY, Action.REWIND)


@dataclass(frozen=True, slots=True)
class Step:
    """Decision for one partition.

    Attributes:
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
) -> Action:
    """Return what to do with a partition that has a checkpoint at the source.

    The target is never overwritten by something older, with one exception, the rewind: the target
    still has what this same follower copied there, so nobody else has written it since, and the
    source has gone back from there. A source that was lower from the beginning is not a rewind.

    Args:
        source: position at the source.
        target: position at the target; None if it has none.
        copied: position that was last copied to the target; None if none was.
        is_owned: whether a live consumer owns the partition at the target.
    """
    if source.is_closed or (target and target.is_closed):
        return Action.CLOSED
    if target is not None and is_same(source, target):
        return Action.EQUAL
    if is_owned:
        return Action.OWNED
    if source.sequence_number is None:
        return Action.NO_NUMBER
    if target is None or target.sequence_number is None:
        return Action.COPY
    if source.sequence_number >= target.sequence_number:
        return Action.COPY
    return Action.REWIND if target == copied else Action.NEWER


def is_same(source: Position, target: Position) -> bool:
    """Return whether the target has the position; an offset that it lacks is a difference."""
    if source.sequence_number is None or target.sequence_number is None:
        return source == target
    has_offset = bool(target.offset) or not source.offset
    return source.sequence_number == target.sequence_number and has_offset


def plan(
    source: Mapping[str, Position],
    target: Mapping[str, Position],
    owned: Mapping[str, str],
    copied: Mapping[str, Position] | None = None,
) -> list[Step]:
    """Return the decision for every partition of the source, in the order of `source`.

    Args:
        source: positions by partition id.
        target: positions by partition id.
        owned: live owners at the target, by partition id.
        copied: what was copied to the target before, by partition id.
    """
    return [
        Step(
            partition_id,
            decide(
                position,
                target.get(partition_id),
                (copied or {}).get(partition_id),
                is_owned=bool(owned.get(partition_id)),
            ),
            position,
            target.get(partition_id),
        )
        for partition_id, position in source.items()
    ]
