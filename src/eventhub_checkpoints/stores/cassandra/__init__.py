"""The store on Cassandra.

- `url`: contact points, keyspace and datacenter. `driver`: how to connect.
- `protocol`: tables and lightweight transactions. `statements`: as the driver takes them.
- `rows`: results as records. `errors`: the driver's errors.
- `_async`, `_sync`: the `store`, its `requests`, its `schema`, and the driver's `transport`.
"""
