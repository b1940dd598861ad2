"""Earlier checkpoints of a group, in stores that keep a history."""

from collections.abc import Sequence
from operator import itemgetter

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.abilities import KeepsHistory
from eventhub_checkpoints.operations.groups import Row
from eventhub_checkpoints.records import Scope


def history(
    store: CheckpointStore, scope: Scope, partition_ids: Sequence[str] = (), *, limit: int
) -> list[Row] | None:
    """Return the newest entries of a group's history, newest first; None if the store keeps none.

    Args:
        store: any synchronous checkpoint store.
        scope: the group.
        partition_ids: empty: all partitions.
        limit: number of entries.
    """
    if not isinstance(store, KeepsHistory):
        return None
    entries: list[Row] = [
        entry
        for id_ in dict.fromkeys(partition_ids or (None,))
        for entry in store.list_history(*scope, partition_id=id_, limit=limit)
    ]
    return sorted(entries, key=itemgetter("last_modified_time"), reverse=True)[:limit]


def keep_next_write(store: CheckpointStore, scope: Scope, partition_id: str) -> None:
    """Have the next write of a partition kept in the history, by a store that has one."""
    if isinstance(store, KeepsHistory):
        store.keep_next_write(scope, partition_id)
