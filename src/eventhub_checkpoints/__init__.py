"""Durable positions for Azure Event Hubs.

The map of the package:

- `records`, `errors`: what is stored, and what can go wrong.
- `memory`, `blob`, `table`, `sql`, `redis`, `cassandra`: the stores; `aio` has the same names for
  `azure.eventhub.aio`.
- `abilities`: what a store can do besides: list groups, delete, write in a transaction.
- `base`: the base class of every store, and the four hooks that a new backend fills in.
- `registry`: stores by URL, or by a mapping of settings.
- `conformance`: the checks that certify a store.
- `checkpointer`, `coalescing`, `processor`: what is processed, and when that is saved; `handover`:
  partitions handed over instead of taken. `aio` has the same names. `every`, `trailing`, `any_of`,
  `all_of` make the policies that they take.
- `dead_letters`: events that could not be processed, in a file or another hub; `sql` has them in
  a table.
- `arrow`: a hub, or a member's share of it, as Arrow batches, for pandas, Polars and DuckDB; `aio`
  has it, too.
- `spark`, `receive`: where a PySpark job starts, and how it reads the hub. `send`: how it writes
  to one.
- `localhub`: a local Event Hubs stand-in, for trying and testing.
- `testing`: what the fixtures of the pytest plugin return.
- `operations`: lag, states and positions of consumer groups.
- `cli`: the command `eventhub-checkpoints`. `ui`: the page of `ehcp ui`.
- `iothub_react`: positions that iothub-react has saved.

Behind these names are `stores`, `processing`, `receive`, `consume`, `amqp`, `sdk` and `_shared`;
each has a map like this.
"""

from eventhub_checkpoints.checkpointer import Checkpointer
from eventhub_checkpoints.coalescing import CoalescingCheckpointStore
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    DataLossError,
    HubUnavailableError,
    InvalidCheckpointError,
    InvalidRecordError,
    MissingDriverError,
    PoisonError,
    StaleCheckpointError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.handover import HandoverStore
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.processing.policy import Policy, all_of, any_of, every, trailing
from eventhub_checkpoints.processing.stall import Stall
from eventhub_checkpoints.processing.statistics import PartitionStats
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.processor import CheckpointManager, EventProcessor, PartitionProcessor
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope, SequenceOffset
from eventhub_checkpoints.registry import open_store

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointStoreError",
    "Checkpointer",
    "CoalescingCheckpointStore",
    "ConfigurationError",
    "DataLossError",
    "EventProcessor",
    "HandoverStore",
    "HubUnavailableError",
    "InvalidCheckpointError",
    "InvalidRecordError",
    "MemoryCheckpointStore",
    "MissingDriverError",
    "Ownership",
    "PartitionProcessor",
    "PartitionStats",
    "PoisonError",
    "Policy",
    "Position",
    "Scope",
    "SequenceOffset",
    "StaleCheckpointError",
    "Stall",
    "StoreAccessError",
    "StoreError",
    "StoreNotReadyError",
    "StoreUnavailableError",
    "all_of",
    "any_of",
    "every",
    "open_store",
    "trailing",
]

for _public in (PartitionStats, Policy, Position, Stall, all_of, any_of, every, trailing):
    _public.__module__ = __name__
