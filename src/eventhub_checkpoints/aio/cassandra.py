"""Checkpoint store in Cassandra, written only by lightweight transactions."""

from eventhub_checkpoints.stores.cassandra._async.store import CassandraCheckpointStore

__all__ = ["CassandraCheckpointStore"]

CassandraCheckpointStore.__module__ = __name__
