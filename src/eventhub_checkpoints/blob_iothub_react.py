"""Reader of checkpoints that iothub-react left in Azure Blob Storage.

iothub-react kept one blob per partition, named `partition-NUMBER`, whose content is the offset, in
one container per hub and consumer group.
"""

from eventhub_checkpoints.stores.legacy.blob import read_iothub_react_blobs

__all__ = ["read_iothub_react_blobs"]

read_iothub_react_blobs.__module__ = __name__
