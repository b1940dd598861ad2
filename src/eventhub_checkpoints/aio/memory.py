"""Checkpoint store in this process's memory: for tests, experiments and as a readable example."""

from eventhub_checkpoints.stores.memory._async.store import MemoryCheckpointStore

__all__ = ["MemoryCheckpointStore"]

MemoryCheckpointStore.__module__ = __name__
