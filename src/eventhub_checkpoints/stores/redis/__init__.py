"""The store on Redis.

- `url`: the server, and what may stand in the URL's query.
- `protocol`: keys, scripts (the `.lua` files), error codes, and hashes as records.
- `_async`, `_sync`: the `store`, and the driver's `transport`.
"""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Redis store", "redis", "redis")
