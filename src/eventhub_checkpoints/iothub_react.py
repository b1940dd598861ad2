"""Readers of checkpoints that iothub-react left in Azure Blob Storage or in Cassandra.

- In a container, one for each hub and consumer group, it kept a blob `partition-NUMBER` for each
  partition, whose content is the offset.
- In a keyspace, one for each hub and consumer group, it kept a row for each partition in the table
  `checkpoints(partition int PRIMARY KEY, offset text, lastUpdate timestamp)`.

Each reader needs the extra of its backend, when it is imported: `blob` or `cassandra`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventhub_checkpoints.stores.legacy.blob import read_iothub_react_blobs
    from eventhub_checkpoints.stores.legacy.cassandra import read_iothub_react_table

__all__ = ["read_iothub_react_blobs", "read_iothub_react_table"]


def __getattr__(name: str) -> Any:
    """Import a reader, and with it the driver of its backend only."""
    reader: Any
    if name == "read_iothub_react_blobs":
        from eventhub_checkpoints.stores.legacy.blob import read_iothub_react_blobs as reader
    elif name == "read_iothub_react_table":
        from eventhub_checkpoints.stores.legacy.cassandra import read_iothub_react_table as reader
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    reader.__module__ = __name__
    globals()[name] = reader
    return reader
