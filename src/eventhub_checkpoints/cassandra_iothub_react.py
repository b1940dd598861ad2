"""Checkpoints that iothub-react left in Cassandra, to be read.

It kept one row for each partition in a table of its own:
`checkpoints(partition int PRIMARY KEY, offset text, lastUpdate timestamp)`, in a keyspace for each
hub and consumer group.
"""

from eventhub_checkpoints.stores.legacy.cassandra import read_iothub_react_table

__all__ = ["read_iothub_react_table"]

read_iothub_react_table.__module__ = __name__
