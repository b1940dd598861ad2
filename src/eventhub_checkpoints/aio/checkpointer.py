"""Checkpoints of what was processed, in whatever order, for handlers of a plain client.

An event is tracked when it arrives and finished when it was processed. What is saved is the last
position before which everything is finished, when the policy says so, beside the handlers.
"""

from eventhub_checkpoints.processing._async.checkpointer import Checkpointer, Handlers
from eventhub_checkpoints.processing._async.in_flight_event import Ticket

__all__ = ["Checkpointer", "Handlers", "Ticket"]

for _public in (Checkpointer, Handlers, Ticket):
    _public.__module__ = __name__
