"""A class for each partition: the events in order, and what was processed saved.

`EventProcessor` runs a client and hands its events to your class. It is built on the client's
public API only, and works with every store.
"""

from eventhub_checkpoints.processing._async.checkpoint_manager import (
    CheckpointManager,
    PartitionProcessor,
)
from eventhub_checkpoints.processing._async.delivery_tracker import Apart
from eventhub_checkpoints.processing._async.processor import EventProcessor

__all__ = ["Apart", "CheckpointManager", "EventProcessor", "PartitionProcessor"]

for public in (Apart, CheckpointManager, EventProcessor, PartitionProcessor):
    public.__module__ = __name__
