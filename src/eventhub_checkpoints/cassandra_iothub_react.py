"""Reader of checkpoints that iothub-react left in Cassandra.

iothub-react kept one row per partition in the table
`checkpoints(partition int PRIMARY KEY, offset text, lastUpdate timestamp)`, in one keyspace per hub
and consumer group.
"""

from eventhub_checkpoints.stores.legacy.cassandra import read_iothub_react_table

__all__ = ["read_iothub_react_table"]

read_iothub_react_table.__module__ = __name__
