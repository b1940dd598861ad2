"""Checkpoints in Redis: two hashes for each consumer group, every decision in one script."""

from eventhub_checkpoints.stores.redis._sync.store import RedisCheckpointStore

__all__ = ["RedisCheckpointStore"]

RedisCheckpointStore.__module__ = __name__
