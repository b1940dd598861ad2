"""The same names as in `eventhub_checkpoints`, for `azure.eventhub.aio`."""

from eventhub_checkpoints.aio.checkpointer import Checkpointer
from eventhub_checkpoints.aio.coalescing import CoalescingCheckpointStore
from eventhub_checkpoints.aio.handover import HandoverStore
from eventhub_checkpoints.aio.memory import MemoryCheckpointStore
from eventhub_checkpoints.aio.processor import (
    CheckpointManager,
    EventProcessor,
    PartitionProcessor,
)
from eventhub_checkpoints.aio.registry import open_store

__all__ = [
    "CheckpointManager",
    "Checkpointer",
    "CoalescingCheckpointStore",
    "EventProcessor",
    "HandoverStore",
    "MemoryCheckpointStore",
    "PartitionProcessor",
    "open_store",
]
