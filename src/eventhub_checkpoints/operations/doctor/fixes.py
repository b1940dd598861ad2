"""Fixes for findings: what can be mended without a decision of the operator."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.doctor.checkpoints import needs_offset
from eventhub_checkpoints.operations.doctor.finding import GroupSnapshot
from eventhub_checkpoints.operations.groups import in_order, release
from eventhub_checkpoints.operations.peek import read_events, through_some_group
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.recorded_change import Command, Outcome, changing
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, OffsetRange


class Action(StrEnum):
    """Kind of a fix.

    Attributes:
        RELEASE: the ownership of a dead consumer is released; the checkpoint stays.
        DELETE: the rows of a partition that the hub does not have are deleted.
        ADD_OFFSET: a checkpoint gets the offset of its event.
    """

    RELEASE = "release"
    DELETE = "delete"
    ADD_OFFSET = "add offset"


@dataclass(frozen=True, slots=True)
class Fix:
    """Change of one partition's rows.

    Attributes:
        before: what is stored now, for people.
    """

    action: Action
    partition_id: str
    before: str


def planned(snapshot: GroupSnapshot) -> list[Fix]:
    """Return the fixes of a group, deletions first.

    None of them concerns a partition with a live owner.
    """
    if snapshot.group is None:
        return []
    return [*deletions(snapshot), *releases(snapshot), *offsets(snapshot)]


def deletions(snapshot: GroupSnapshot) -> Iterator[Fix]:
    """Yield the deletions of rows of partitions that the hub does not have."""
    group = snapshot.group
    if group is None or not snapshot.properties:
        return
    for id_ in group.partition_ids:
        if id_ in snapshot.properties or group.has_live_owner([id_]):
            continue
        row, owner = group.checkpoints.get(id_), group.ownerships.get(id_)
        before = f"checkpoint {row['sequence_number']}" if row else "no checkpoint"
        yield Fix(Action.DELETE, id_, f"{before}, owner {owner.owner_id if owner else ''!r}")


def releases(snapshot: GroupSnapshot) -> Iterator[Fix]:
    """Yield the releases of ownerships whose consumers no longer renew them."""
    ownerships = snapshot.group.ownerships if snapshot.group else {}
    for id_ in in_order(ownerships):
        owner = ownerships[id_]
        is_foreign = bool(snapshot.properties) and id_ not in (snapshot.properties or ())
        if owner.is_dead and not is_foreign:
            yield Fix(Action.RELEASE, id_, f"owner {owner.owner_id!r}, {owner.age:.0f} s old")


def offsets(snapshot: GroupSnapshot) -> Iterator[Fix]:
    """Yield the offsets to add, where the event of the checkpoint is retained."""
    if snapshot.group is None or not snapshot.properties:
        return
    for id_ in in_order(snapshot.group.checkpoints.keys() & snapshot.properties.keys()):
        row, here = snapshot.group.checkpoints[id_], snapshot.properties[id_]
        if snapshot.group.has_live_owner([id_]) or not needs_offset(row, here):
            continue
        if here.first_sequence_number <= row["sequence_number"] < here.next_sequence_number:
            yield Fix(Action.ADD_OFFSET, id_, f"checkpoint {row['sequence_number']} without offset")


def carry_out(
    store: CheckpointStore,
    hub: HubAddress,
    snapshot: GroupSnapshot,
    fix: Fix,
    *,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> str:
    """Carry out a fix other than a deletion; return what was changed, in one sentence.

    It is conditional on the row that was read, so that a consumer that came in the meantime wins.

    Args:
        store: the store that the snapshot was read from.
        hub: the hub and the group.
        snapshot: what the fix was planned by.
        fix: the fix.
        through: consumer group to read an event through; see `peek`.
        timeout: seconds for reading an event.

    Raises:
        CheckpointStoreError: the store or the hub failed; nothing was changed.
    """
    assert snapshot.group is not None, "a fix is planned for the rows of a group"
    id_, scope, group = fix.partition_id, snapshot.scope, snapshot.group
    if fix.action is Action.RELEASE:
        if not release(store, [group.ownerships[id_].row]):
            return f"partition {id_}: nothing released, another consumer has claimed it"
        return f"partition {id_}: released ({fix.before})"
    number: int = group.checkpoints[id_]["sequence_number"]
    that_event = OffsetRange(id_, number, number + 1)
    events = through_some_group(hub, through, lambda each: read_events(each, that_event, timeout))
    offset = events[0].offset if events else None
    if offset is None:
        return f"partition {id_}: nothing changed, event {number} has no offset"
    store.update_checkpoint(Position(number, offset).as_dict(scope, id_), on_stale="raise")
    return f"partition {id_}: offset {offset} added to checkpoint {number}"


def mended(
    command: Command,
    hub: HubAddress,
    snapshot: GroupSnapshot,
    *,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
) -> tuple[list[tuple[Fix, str]], Outcome | None]:
    """Carry out all planned fixes.

    Args:
        command: records the deletions.
        hub: the hub and the group.
        snapshot: what the fixes are planned by.
        through: consumer group to read an event through; see `peek`.
        timeout: seconds for reading an event.

    Returns:
        Each fix with what was changed, or why nothing was; and what was deleted, None if nothing
        was.
    """
    fixes = planned(snapshot)
    done: list[tuple[Fix, str]] = []
    outcome = None
    if deleted := [fix for fix in fixes if fix.action is Action.DELETE]:
        refusal = ""
        try:
            with changing(command, snapshot.scope) as change:
                outcome = change.store(dict.fromkeys(fix.partition_id for fix in deleted))
        except ConfigurationError as error:
            refusal = f"nothing changed: {error}"
        for fix in deleted:
            what = refusal or f"rows deleted ({fix.before})"
            done.append((fix, f"partition {fix.partition_id}: {what}"))
    for fix in fixes[len(deleted) :]:
        try:
            changed = carry_out(command.store, hub, snapshot, fix, through=through, timeout=timeout)
        except CheckpointStoreError as error:
            changed = f"partition {fix.partition_id}: nothing changed: {error}"
        done.append((fix, changed))
    return done, outcome
