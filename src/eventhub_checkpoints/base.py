"""The checkpoint store that every backend is: the SDK's four methods over four typed hooks.

A backend subclasses `BaseCheckpointStore` and fills in `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. Everything that a backend would get wrong is here: the
SDK's dicts and habits, parallel claims, retries and what they mean, checkpoints that do not go
back, clocks, releases. `docs/custom-store.md` builds one from nothing.
"""

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._sync.base import BaseCheckpointStore
from eventhub_checkpoints.stores.hook_results import (
    ABSENT,
    FORCE,
    UNKNOWN,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)

__all__ = [
    "ABSENT",
    "FORCE",
    "UNKNOWN",
    "BaseCheckpointStore",
    "Checkpoint",
    "Conflict",
    "Listing",
    "Lost",
    "Ownership",
    "Proposal",
    "Scope",
    "Seen",
    "StoreSettings",
    "Won",
    "Written",
    "seconds_left",
]

for _public in (BaseCheckpointStore, Conflict, Listing, Lost, Seen, StoreSettings, Won, Written):
    _public.__module__ = __name__
