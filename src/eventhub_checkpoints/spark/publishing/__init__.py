"""The progress of a streaming query, written into a checkpoint store.

- `publisher`: `CheckpointPublisher`. `following`, `runs`, `watching`, `observed`: following a
  query.
- `outbox`, `forward`: writing in the background, and never back. `stats`: figures.
"""
