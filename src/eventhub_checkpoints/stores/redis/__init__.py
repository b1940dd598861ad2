"""The store on Redis.

- `url`, `options`: the server, and what may stand in the URL's query.
- `protocol`: keys, scripts and the server's error codes. `rows`: hashes as records.
- `_async`, `_sync`: the `store`, its `requests`, and the driver's `transport`.
"""
