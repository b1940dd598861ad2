"""Plans that bring positions back or over: undo, import and copy.

All are pure: positions in, what to do with each partition out.
"""

from collections.abc import Iterable
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


class TransferState(StrEnum):
    """What an import or a copy does with a partition.

    Attributes:
        WRITE: the position is stored.
        SAME: it is stored already.
        NEWER: a later position is stored, and is kept.
        UNCLEAR: a position without a sequence number is stored, and is kept.
        UNUSABLE: the new position has no sequence number, so it cannot be stored.
    """

    WRITE = "write"
    SAME = "same"
    NEWER = "newer: kept"
    UNCLEAR = "offset only: kept"
    UNUSABLE = "no number: left out"


@dataclass(frozen=True, slots=True)
class PartitionTransfer:
    """Plan of an import or a copy for one partition.

    Attributes:
        present: the stored position; None if none is stored.
        position: the one to store.
    """

    partition_id: str
    present: Position | None
    position: Position
    state: TransferState


def transfer_state(
    position: Position, present: Position | None, *, force: bool = False
) -> TransferState:
    """Return what is done with a position.

    Args:
        position: to be stored.
        present: the stored position; None if none is stored.
        force: overwrite later positions too.
    """
    if position.sequence_number is None:
        return TransferState.UNUSABLE
    if present is None:
        return TransferState.WRITE
    if position.sequence_number == present.sequence_number and (
        position.offset in ("", present.offset)
    ):
        return TransferState.SAME
    if force:
        return TransferState.WRITE
    if present.sequence_number is None:
        return TransferState.UNCLEAR
    is_newer = present.sequence_number > position.sequence_number
    return TransferState.NEWER if is_newer else TransferState.WRITE


def plan_transfer(
    positions: Positions,
    present: Positions,
    partition_ids: Iterable[str] = (),
    *,
    force: bool = False,
) -> list[PartitionTransfer]:
    """Plan the storing of positions that were read elsewhere.

    Args:
        positions: to be stored.
        present: positions that are stored now.
        partition_ids: default: all of `positions`.
        force: overwrite later positions too.
    """
    chosen = {*partition_ids} or {*positions}
    return [
        PartitionTransfer(
            id_,
            present.get(id_),
            positions[id_],
            transfer_state(positions[id_], present.get(id_), force=force),
        )
        for id_ in in_order(positions)
        if id_ in chosen
    ]
