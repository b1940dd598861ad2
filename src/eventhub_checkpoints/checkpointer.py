"""Checkpoints for event handlers that process events concurrently, in any order.

An event is tracked when it arrives and finished when it was processed. The saved position is the
last one up to which all events are finished. It is written in the background, when the policy asks
for it.
"""

from eventhub_checkpoints.processing._sync.checkpointer import Checkpointer, Handlers
from eventhub_checkpoints.processing._sync.tracked_event import TrackedEvent

__all__ = ["Checkpointer", "Handlers", "TrackedEvent"]

for _public in (Checkpointer, Handlers, TrackedEvent):
    _public.__module__ = __name__
