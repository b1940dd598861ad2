"""Checkpoint store in Azure Table Storage, with the entities of the official JavaScript store."""

from eventhub_checkpoints.stores.table._async.store import TableCheckpointStore

__all__ = ["TableCheckpointStore"]

TableCheckpointStore.__module__ = __name__
