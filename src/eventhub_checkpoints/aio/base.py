"""Base class of every checkpoint store: the SDK's four methods on top of four typed hooks.

A backend subclasses `BaseCheckpointStore` and implements `read_ownerships`, `try_claim`,
`read_checkpoints` and `write_checkpoint`. The base class handles everything that backends tend to
get wrong: the SDK's dicts and its order of calls, concurrent claims, retries and their ambiguous
outcomes, checkpoints that must not go back, clocks, and releases. `docs/how-to/custom-store.md`
builds a store from scratch.
"""

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.settings import StoreSettings
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores._async.base import BaseCheckpointStore
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

BaseCheckpointStore.__module__ = __name__
