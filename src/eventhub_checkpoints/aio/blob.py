"""Checkpoint store in Azure Blob Storage, byte-compatible with all official SDKs."""

from eventhub_checkpoints.stores.blob._async.store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]

BlobCheckpointStore.__module__ = __name__
