"""Counts the events that are processed twice when a second consumer joins a group.

`member` in `_async` (edited) and `_sync` (derived) is a consumer that processes in one of `WAYS`.
`runs` starts two of them on a local hub, under load, and counts; `official` does so in groups with
the official Blob store. `__main__` prints the table.
"""

from eventhub_checkpoints import every

WAYS = {
    "processor": "EventProcessor",
    "checkpointer": "Checkpointer",
    "coalescing": "CoalescingCheckpointStore",
    "each": "a write per event",
}
POLICY = every(events=5000, seconds=5)
GROUP = "$Default"
