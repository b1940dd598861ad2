"""Event processor: one object of your class per partition, with automatic checkpoints.

`EventProcessor` runs a client and passes its events, in order, to your class. It uses only the
client's public API, and works with every store.
"""

from eventhub_checkpoints.processing._sync.dispatcher import CheckpointManager, PartitionProcessor
from eventhub_checkpoints.processing._sync.in_flight_event import Apart
from eventhub_checkpoints.processing._sync.processor import EventProcessor

__all__ = ["Apart", "CheckpointManager", "EventProcessor", "PartitionProcessor"]

for _public in (Apart, CheckpointManager, EventProcessor, PartitionProcessor):
    _public.__module__ = __name__
