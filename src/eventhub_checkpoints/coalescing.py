"""Checkpoint store that coalesces writes, for programs that checkpoint every event."""

from eventhub_checkpoints.processing._sync.coalescing import CoalescingCheckpointStore

__all__ = ["CoalescingCheckpointStore"]

CoalescingCheckpointStore.__module__ = __name__
