"""Event processor: one object of your class per partition, with automatic checkpoints.

`EventProcessor` runs a client and passes its events, in order, to your class. It uses only the
client's public API, and works with every store.
"""

from eventhub_checkpoints.processing._sync.dispatcher import CheckpointManager, PartitionProcessor
from eventhub_checkpoints.processing._sync.processor import EventProcessor
from eventhub_checkpoints.processing._sync.tracked_event import TrackedBatchEvent, TrackedEvent

__all__ = ["CheckpointManager", "EventProcessor", "PartitionProcessor", "TrackedEvent"]

for _public in (CheckpointManager, EventProcessor, PartitionProcessor, TrackedBatchEvent):
    _public.__module__ = __name__
