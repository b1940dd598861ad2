"""Deletion of the rows of a group, and the release of what its dead consumers own."""

from collections.abc import Sequence

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.groups import Group, release
from eventhub_checkpoints.operations.recorded_change import GroupChange, Outcome

STOP_BEFORE_DELETING = "stop its consumers: they would store their rows again"


def delete_rows(
    change: GroupChange, partition_ids: Sequence[str] = ()
) -> tuple[list[str], Outcome | None]:
    """Delete the rows of a group, or plan it; return their partitions, and what was done.

    Args:
        change: the group.
        partition_ids: default: all that have a row.

    Raises:
        GroupActiveError: the group has live members.
        ConfigurationError: a partition has no row, or the store cannot delete.
    """
    chosen = with_rows(change.group, partition_ids)
    change.refuse_active(way_out=STOP_BEFORE_DELETING)
    return chosen, change.store(dict.fromkeys(chosen))


def release_dead(change: GroupChange, partition_ids: Sequence[str] = ()) -> list[str]:
    """Release the ownerships of dead consumers, or plan it; return their partitions.

    A partition that was claimed meanwhile keeps its owner, as its etag has changed.

    Args:
        change: the group.
        partition_ids: default: all that have a row.

    Raises:
        ConfigurationError: a partition has no row.
    """
    owners = change.group.ownerships
    chosen = [
        id_
        for id_ in with_rows(change.group, partition_ids)
        if id_ in owners and owners[id_].is_dead
    ]
    if change.command.executes:
        release(change.command.store, [owners[id_].row for id_ in chosen])
    return chosen


def with_rows(group: Group, partition_ids: Sequence[str]) -> list[str]:
    """Return the partitions that are named, or all that have a row, in numeric order.

    Raises:
        ConfigurationError: one that is named has no row.
    """
    present = group.partition_ids
    if absent := [id_ for id_ in partition_ids if id_ not in present]:
        raise ConfigurationError(f"{group.scope} has no row of partition {', '.join(absent)}")
    return [id_ for id_ in present if id_ in partition_ids or not partition_ids]
