"""Checkpoint store in Redis: two hashes per consumer group, one script per operation."""

from eventhub_checkpoints.stores.redis._async.store import RedisCheckpointStore

__all__ = ["RedisCheckpointStore"]

RedisCheckpointStore.__module__ = __name__
