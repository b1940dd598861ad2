"""What a store can do beyond the SDK's four methods: declared by a class, never guessed.

`isinstance(store, ListsScopes)` tells whether a store has the ability. A backend adds the class
to its bases and fills in the hook.
"""

from eventhub_checkpoints.stores._sync.abilities import (
    ANY,
    AnyNumber,
    Deletes,
    FullCheckpointStore,
    ListsScopes,
    WritesInTransaction,
)

__all__ = [
    "ANY",
    "AnyNumber",
    "Deletes",
    "FullCheckpointStore",
    "ListsScopes",
    "WritesInTransaction",
]

for _public in (AnyNumber, Deletes, FullCheckpointStore, ListsScopes, WritesInTransaction):
    _public.__module__ = __name__
