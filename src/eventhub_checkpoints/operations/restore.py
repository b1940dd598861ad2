"""Undo: the positions before a command, restored from its record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.operations.journal import (
    STARTED,
    UNDONE,
    Journal,
    Record,
    newest_change,
)
from eventhub_checkpoints.operations.positions import Position, Positions
from eventhub_checkpoints.operations.recorded_change import GroupChange, Outcome
from eventhub_checkpoints.records import Scope


class UndoState(StrEnum):
    """What an undo does with a partition.

    Attributes:
        RESTORE: it holds what the command stored: the former position is restored.
        UNCHANGED: it holds the former position.
        CHANGED: something else was stored since.
        UNTOUCHED: the command left it as it was, and so does the undo.
    """

    RESTORE = "restore"
    UNCHANGED = "unchanged"
    CHANGED = "changed since"
    UNTOUCHED = "not changed by the command"


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

    @property
    def is_needed(self) -> bool:
        """Return whether the stored position is no longer the former one."""
        return self.state in (UndoState.RESTORE, UndoState.CHANGED)


def plan_undo(
    former: Positions, written: Positions, present: Positions, untouched: Positions
) -> list[PartitionUndo]:
    """Plan the restoration of the positions before a command.

    Args:
        former: positions before the command.
        written: positions that it stored; a partition that is missing had its row deleted.
        present: positions now.
        untouched: positions that it left as they were.
    """
    plan = []
    for id_ in in_order({*former, *written, *untouched}):
        before, now = former.get(id_), present.get(id_)
        if id_ in untouched:
            before, state = now, UndoState.UNTOUCHED
        elif now == before:
            state = UndoState.UNCHANGED
        else:
            state = UndoState.RESTORE if now == written.get(id_) else UndoState.CHANGED
        plan.append(PartitionUndo(id_, now, before, state))
    return plan


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo of a command, and what was done.

    Attributes:
        plan: decisions, by partition in numeric order.
        refused: partitions that were changed since, because of which nothing is restored; empty if
            they may be overwritten.
        outcome: None if nothing was stored.
    """

    plan: Sequence[PartitionUndo]
    refused: Sequence[str] = ()
    outcome: Outcome | None = None

    @property
    def is_needed(self) -> bool:
        """Return whether a partition does not hold its former position."""
        return any(each.is_needed for each in self.plan)


def undo(change: GroupChange, record: Record) -> Undo:
    """Restore the positions before a command, or plan it.

    Positions that were changed since are overwritten only by force.

    Args:
        change: the group of the record.
        record: what is undone; it is marked so once nothing is left to restore.

    Raises:
        GroupActiveError: the group has live members, whose partitions may not be taken.
        ConfigurationError: see `GroupChange.store`.
    """
    command = change.command
    change.refuse_active(own=record.owner if record.state == STARTED else "")
    plan = plan_undo(record.former, record.written, change.present, record.untouched)
    changed = [each.partition_id for each in plan if each.state is UndoState.CHANGED]
    if changed and not command.force:
        return Undo(plan, changed)
    targets = {each.partition_id: each.former for each in plan if each.is_needed}
    outcome = change.store(targets)
    if command.executes:
        command.journal.save(replace(record, state=UNDONE))
    return Undo(plan, (), outcome)


def record_to_undo(
    journal: Journal, named: Record | None, scope: Scope | None, store: str
) -> Record:
    """Return the record that a command undoes.

    Args:
        journal: where records are kept.
        named: the one that the operator named; None: the newest change of the group.
        scope: the group that the operator named; None, with a record: that of the record.
        store: the store, as shown to people.

    Raises:
        CheckpointStoreError: there is none; ConfigurationError: it is of another group or store.
    """
    if named is None:
        assert scope is not None, "without a record, the group is named"
        if newest := newest_change(journal, scope, store):
            return newest
        raise nothing_to_undo(journal, scope, store)
    if scope is not None and scope.folded != named.scope.folded:
        raise ConfigurationError(f"{named.path} is of {named.scope}, and the command names {scope}")
    if named.store != store:
        raise ConfigurationError(
            f"{named.path} is of store {quoted(named.store)}, and the command names "
            f"{quoted(store)}; {as_typed('import')} stores its positions there"
        )
    return named


def nothing_to_undo(journal: Journal, scope: Scope, store: str) -> CheckpointStoreError:
    """Return the error that a group has no change left to undo."""
    look = (
        f"{as_typed('undo --list')} shows the records, and {as_typed('history')}, on stores that "
        "keep a history, earlier checkpoints"
    )
    if any(record.store == store for record in journal.records(scope)):
        return CheckpointStoreError(
            f"nothing is left to undo: every recorded change of {scope} in {store} is undone; "
            f"{look}"
        )
    return CheckpointStoreError(
        f"nothing to undo: there is no recorded change of {scope} in {store} on this machine; "
        f"{look}"
    )
