"""`read_batches`: a hub as Arrow batches.

- `plan`: which hub and ranges, and what a commit covers.
- `_async`, `_sync`: `batches`, with `read_batches`; and the `source` that waits for reader threads.
"""

from eventhub_checkpoints.errors import MissingDriverError

try:
    import pyarrow  # noqa: F401  (checked once, before any module here needs it)
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error
