"""Checkpoint store and dead letters in tables of PostgreSQL, MySQL, MariaDB or SQLite."""

from eventhub_checkpoints.stores.sql._async.dead_letters import DeadLetterTable
from eventhub_checkpoints.stores.sql._async.store import SqlCheckpointStore

__all__ = ["DeadLetterTable", "SqlCheckpointStore"]

for _public in (DeadLetterTable, SqlCheckpointStore):
    _public.__module__ = __name__
