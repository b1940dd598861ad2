"""The store on Cassandra.

- `url`: contact points, keyspace and datacenter. `driver`: how to connect, and its statements.
- `protocol`: tables, lightweight transactions, and rows as records. `errors`: the driver's errors.
- `_async`, `_sync`: the `store`, and the driver's `transport`.
"""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Cassandra store", "cassandra", "cassandra")
