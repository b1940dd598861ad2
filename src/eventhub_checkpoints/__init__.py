"""Durable positions for Azure Event Hubs.

The map of the package:

- `records`, `errors`: what is stored, and what can go wrong.
- `memory`, `blob`, `sql`, `redis`, `cassandra`: the stores; `aio` has the same names for
  `azure.eventhub.aio`.
- `abilities`: what a store can do besides: list groups, delete, write in a transaction.
- `base`: the base class of every store, and the four hooks that a new backend fills in.
- `registry`: stores by URL, or by a mapping of settings.
- `conformance`: the checks that certify a store.
- `arrow`: a hub as Arrow batches, for pandas, Polars and DuckDB; `aio` has it, too.
- `spark`, `receive`: where a PySpark job starts, and how it reads the hub.
- `localhub`: a local Event Hubs stand-in, for trying and testing.
- `cli`: the command `eventhub-checkpoints`.
"""

from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    DataLossError,
    HubUnavailableError,
    InvalidRecordError,
    MissingDriverError,
    StaleCheckpointError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope, SequenceOffset
from eventhub_checkpoints.registry import open_store

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "CheckpointStoreError",
    "ConfigurationError",
    "DataLossError",
    "HubUnavailableError",
    "InvalidRecordError",
    "MemoryCheckpointStore",
    "MissingDriverError",
    "Ownership",
    "Scope",
    "SequenceOffset",
    "StaleCheckpointError",
    "StoreAccessError",
    "StoreError",
    "StoreNotReadyError",
    "StoreUnavailableError",
    "open_store",
]
