"""Checkpoints that iothub-react left in Azure Blob Storage, to be read.

It kept one blob for each partition, named `partition-NUMBER`, with the offset as its text, in a
container for each hub and consumer group.
"""

from eventhub_checkpoints.stores.legacy.blob import read_iothub_react_blobs

__all__ = ["read_iothub_react_blobs"]

read_iothub_react_blobs.__module__ = __name__
