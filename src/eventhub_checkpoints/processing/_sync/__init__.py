"""Checkpointer, CoalescingCheckpointStore and EventProcessor, for threads (derived)."""
