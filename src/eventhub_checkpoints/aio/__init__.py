"""The same names as in `eventhub_checkpoints`, for `azure.eventhub.aio`."""

from eventhub_checkpoints.aio.memory import MemoryCheckpointStore
from eventhub_checkpoints.aio.registry import open_store

__all__ = ["MemoryCheckpointStore", "open_store"]
