"""The progress of a streaming query, written into a checkpoint store.

- `publisher`: `eventhub_checkpoints.spark.CheckpointPublisher`.
- `following`, `watching`, `observed`: following a query, by its progress and its rows.
- `outbox`: writing in the background, and never back.
"""
