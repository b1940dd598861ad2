"""A class for each partition: the events in order, and what was processed saved.

`EventProcessor` runs a client and hands its events to your class. It is built on the client's
public API only, and works with every store.
"""

from eventhub_checkpoints.processing._async.checkpoint_manager import (
    Apart,
    CheckpointManager,
    PartitionProcessor,
)
from eventhub_checkpoints.processing._async.processor import EventProcessor

__all__ = ["Apart", "CheckpointManager", "EventProcessor", "PartitionProcessor"]

for _public in (Apart, CheckpointManager, EventProcessor, PartitionProcessor):
    _public.__module__ = __name__
