"""Checkpoints in Azure Blob Storage, byte by byte as every official SDK writes them."""

from eventhub_checkpoints.stores.blob._sync.store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]

BlobCheckpointStore.__module__ = __name__
