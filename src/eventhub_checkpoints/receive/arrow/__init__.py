"""`read_batches`: a hub as Arrow batches.

- `plan`: which hub and ranges, and what a commit covers.
- `_async`, `_sync`: `batches`, with `read_batches`; and the `source` that waits for reader threads.
"""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("receiving Arrow batches", "arrow", "pyarrow")
