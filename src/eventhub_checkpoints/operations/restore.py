"""Plan of an undo: positions in, what to do with each partition out."""

from dataclasses import dataclass
from enum import StrEnum

from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.positions import Position, Positions


class UndoState(StrEnum):
    """What an undo does with a partition.

    Attributes:
        RESTORE: it holds what the command stored: the former position is restored.
        UNCHANGED: it holds the former position.
        CHANGED: something else was stored since.
    """

    RESTORE = "restore"
    UNCHANGED = "unchanged"
    CHANGED = "changed since"


@dataclass(frozen=True, slots=True)
class PartitionUndo:
    """Plan of an undo for one partition.

    Attributes:
        present: the stored position; None if none is stored.
        former: the position before the command; None if none was stored.
    """

    partition_id: str
    present: Position | None
    former: Position | None
    state: UndoState


def plan_undo(former: Positions, written: Positions, present: Positions) -> list[PartitionUndo]:
    """Plan the restoration of the positions before a command.

    Args:
        former: positions before the command.
        written: positions that it stored; a partition that is missing had its row deleted.
        present: positions now.
    """
    plan = []
    for id_ in in_order({*former, *written}):
        before, now = former.get(id_), present.get(id_)
        if now == before:
            state = UndoState.UNCHANGED
        else:
            state = UndoState.RESTORE if now == written.get(id_) else UndoState.CHANGED
        plan.append(PartitionUndo(id_, now, before, state))
    return plan


def positions_before(
    former: Positions, written: Positions, present: Positions
) -> dict[str, Position | None]:
    """Return the positions before a command that was interrupted, of the partitions it changed.

    The other partitions keep their present positions. With these, repeating the command has the
    effect of the first attempt, also if it shifts positions.
    """
    return {
        id_: former.get(id_)
        for id_ in {*former, *written}
        if present.get(id_) == written.get(id_) and present.get(id_) != former.get(id_)
    }
