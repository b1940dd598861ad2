"""Checkpointer, CoalescingCheckpointStore and EventProcessor, for asyncio (edited)."""
