"""Checkpoint store in tables of PostgreSQL, MySQL, MariaDB or SQLite."""

from eventhub_checkpoints.stores.sql._async.store import SqlCheckpointStore

__all__ = ["SqlCheckpointStore"]

SqlCheckpointStore.__module__ = __name__
