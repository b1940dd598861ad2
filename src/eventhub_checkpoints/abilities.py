"""Optional abilities of a store beyond the SDK's four methods, declared by its class.

`isinstance(store, ListsScopes)` tests whether a store has an ability. A backend adds the class to
its bases and implements the hook.
"""

from eventhub_checkpoints.stores._sync.abilities import (
    ANY,
    AnyNumber,
    Deletes,
    KeepsHistory,
    ListsScopes,
    Replaces,
    WritesInTransaction,
)
from eventhub_checkpoints.stores._sync.base import FullCheckpointStore

__all__ = [
    "ANY",
    "AnyNumber",
    "Deletes",
    "FullCheckpointStore",
    "KeepsHistory",
    "ListsScopes",
    "Replaces",
    "WritesInTransaction",
]

for _public in (
    AnyNumber,
    Deletes,
    FullCheckpointStore,
    KeepsHistory,
    ListsScopes,
    Replaces,
    WritesInTransaction,
):
    _public.__module__ = __name__
