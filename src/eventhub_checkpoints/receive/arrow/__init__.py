"""`read_batches`: a hub as Arrow batches.

- `plan`: which hub and ranges, and what a commit covers.
- `_async`, `_sync`: `read_batches`, its `batches`, and the `source` that waits for readers.
"""
