"""A class for each partition: the events in order, and what was processed saved.

`EventProcessor` runs a client and hands its events to your class. It is built on the client's
public API only, and works with every store.
"""

from eventhub_checkpoints.processing._sync.checkpoint_manager import (
    CheckpointManager,
    PartitionProcessor,
)
from eventhub_checkpoints.processing._sync.delivery_tracker import Apart
from eventhub_checkpoints.processing._sync.processor import EventProcessor

__all__ = ["Apart", "CheckpointManager", "EventProcessor", "PartitionProcessor"]

for public in (Apart, CheckpointManager, EventProcessor, PartitionProcessor):
    public.__module__ = __name__
