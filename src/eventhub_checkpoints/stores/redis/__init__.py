"""The store on Redis.

- `url`: the server, and what may stand in the URL's query.
- `protocol`: keys, scripts (the `.lua` files), error codes, and hashes as records.
- `_async`, `_sync`: the `store`, its `requests`, and the driver's `transport`.
"""
