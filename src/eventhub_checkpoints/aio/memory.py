"""Checkpoints in this process's memory: for tests, for trying, and as the readable backend."""

from eventhub_checkpoints.stores.memory._async.store import MemoryCheckpointStore

__all__ = ["MemoryCheckpointStore"]

MemoryCheckpointStore.__module__ = __name__
