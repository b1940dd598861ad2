"""Preview of a reset or of an undo, and a change of exactly what was previewed.

Between the two, an operator looks at the plan: the events are named by their numbers then, and the
stored positions must not have changed.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import some
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import GroupActiveError, refuse_active
from eventhub_checkpoints.operations.groups import Group
from eventhub_checkpoints.operations.journal import STARTED, Record
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.operations.positions import positions_of
from eventhub_checkpoints.operations.recorded_change import Command, Outcome, changing
from eventhub_checkpoints.operations.reset import (
    Goal,
    PartitionReset,
    changes_of,
    plan_through,
)
from eventhub_checkpoints.operations.restore import PartitionUndo, UndoState, plan_undo, undo

CHANGED = "the stored positions have changed since the preview; preview it again"


@dataclass(frozen=True, slots=True)
class Preview:
    """Plan of a reset.

    Attributes:
        refusal: why it cannot be carried out now; `""` if it can.
        seen: digest of the positions from which it starts.
    """

    plan: Sequence[PartitionReset]
    refusal: str
    seen: str

    @property
    def numbers(self) -> dict[str, int]:
        """Return the event that each partition reads next."""
        return {each.partition_id: each.new for each in self.plan}

    @property
    def changes(self) -> int:
        """Return the number of partitions whose stored position changes."""
        return sum(each.before != each.after for each in self.plan)


def preview(polled: PolledGroup, goal: Goal, partition_ids: Sequence[str] = ()) -> Preview:
    """Plan a reset; changes nothing.

    Args:
        polled: the group.
        goal: from where it is to read.
        partition_ids: default: all of the hub.

    Raises:
        ConfigurationError: see `plan_reset`.
    """
    group = polled.read()
    plan = planned(polled, group, goal, partition_ids)
    refusal = refusal_of(group, stop_or_take("reset"))
    return Preview(plan, refusal, digest(group, {each.partition_id for each in plan}))


def stop_or_take(verb: str) -> str:
    """Return what the operator can do about running consumers.

    Args:
        verb: the command that takes their partitions with `--force`.
    """
    forced = as_typed(f"{verb} --force")
    return f"stop its consumers, or take their partitions on the command line: {forced}"


def refusal_of(group: Group, way_out: str, own: str = "") -> str:
    """Return why positions cannot be changed now; `""` if they can; see `refuse_active`."""
    try:
        refuse_active(group, own=own, way_out=way_out)
    except GroupActiveError as error:
        return str(error)
    return ""


def store_previewed(
    command: Command, polled: PolledGroup, numbers: Mapping[str, int], seen: str
) -> Outcome:
    """Carry out a preview that the operator has accepted.

    Args:
        command: how it is recorded.
        polled: the group.
        numbers: `Preview.numbers`.
        seen: `Preview.seen`.

    Raises:
        GroupActiveError: the group has live members.
        ConfigurationError: the positions have changed since, or there is nothing to change; see
            also `plan_reset` and `GroupChange.store`.
    """
    with changing(command, polled.scope) as change:
        change.refuse_active(way_out=stop_or_take("reset"))
        if digest(change.group, numbers.keys()) != seen:
            raise ConfigurationError(CHANGED)
        plan = planned(polled, change.group, numbers)
        outcome = change.store(changes_of(plan, change.group), [*numbers])
    if outcome is None:
        raise ConfigurationError("all partitions are there already; choose another position")
    return outcome


def planned(
    polled: PolledGroup, group: Group, goal: Goal, partition_ids: Sequence[str] = ()
) -> list[PartitionReset]:
    """Plan the reset of a group that was read; see `plan_through`."""
    return plan_through(
        goal,
        group,
        polled.hub,
        partition_ids,
        through=polled.through,
        missing=polled.missing,
        timeout=polled.timeout,
    )


def digest(group: Group, partition_ids: Collection[str]) -> str:
    """Return a digest of the stored positions of some partitions."""
    stored = {
        id_: [position.sequence_number, position.offset]
        for id_, position in positions_of(group).items()
        if id_ in partition_ids
    }
    return hashlib.sha256(json.dumps(stored).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """Plan of an undo.

    Attributes:
        refusal: why it cannot be carried out now; `""` if it can.
    """

    plan: Sequence[PartitionUndo]
    refusal: str

    @property
    def changes(self) -> int:
        """Return the number of partitions that do not hold their former position."""
        return sum(each.is_needed for each in self.plan)


def preview_undo(polled: PolledGroup, record: Record) -> UndoPreview:
    """Plan the undo of a recorded change; changes nothing."""
    group = polled.read()
    plan = plan_undo(record.former, record.written, positions_of(group), record.untouched)
    own = record.owner if record.state == STARTED else ""
    refusal = refusal_of(group, stop_or_take("undo"), own) or changed_since(
        [each.partition_id for each in plan if each.state is UndoState.CHANGED]
    )
    return UndoPreview(plan, refusal)


def carry_out_undo(command: Command, polled: PolledGroup, record: Record) -> Outcome:
    """Undo a recorded change.

    Raises:
        GroupActiveError: the group has live members.
        ConfigurationError: positions were changed since, or there is nothing to restore; see also
            `GroupChange.store`.
    """
    with changing(command, polled.scope) as change:
        done = undo(change, record)
    if done.refused:
        raise ConfigurationError(changed_since(done.refused))
    if done.outcome is None:
        raise ConfigurationError("all partitions have their former positions; nothing was changed")
    return done.outcome


def changed_since(partition_ids: Sequence[str]) -> str:
    """Return why an undo is refused whose partitions were changed since; `""` if none were."""
    if not partition_ids:
        return ""
    return (
        f"positions of partitions {some(partition_ids)} were stored since; "
        f"{as_typed('undo --force')} overwrites them"
    )
