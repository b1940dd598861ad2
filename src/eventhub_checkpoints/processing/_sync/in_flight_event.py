# Not derived: edit this file and its async twin together.
"""One event that is being processed."""

from types import TracebackType
from typing import Any, Self

from eventhub_checkpoints._shared._sync.client_check import ContextGuard
from eventhub_checkpoints.processing import watermark
from eventhub_checkpoints.processing._sync.session import PartitionSession

ANNOUNCED_WITHIN = 1.0
"""Seconds after a first event in which its partition is announced, which another thread does."""


class Ticket(ContextGuard, watermark.Ticket):
    """One event that is being processed: `with` it, or call `done`.

    Leaving the `with` finishes it; leaving it by an exception gives it up. `done` and
    `failed` may be called in any thread.
    """

    __slots__ = ("_claim", "_event")
    twin = "Checkpointer"

    def __init__(self, claim: PartitionSession, event: Any) -> None:
        # Not by the base's `__init__`: it is done for every event.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._claim = claim
        # An event that is not held might be gone, and its id another's.
        self._event = event
        while not claim.enter(self, event):
            claim.wait_for_room()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None:
            self.done()
        else:
            self.failed()

    def done(self) -> None:
        """Finish the event; a second time, or after its claim has ended, changes nothing."""
        claim = self._claim
        is_due = claim.leave(self, self._event)
        self._event = None
        if is_due:
            claim.saver.wake()
        if claim.watchers:
            claim.changed()

    def failed(self) -> None:
        """Give the event up: it is read again when the partition is claimed anew."""
        claim = self._claim
        with claim.guard:
            self.has_failed = True
            claim.forget(self._event)
        self._event = None
        claim.changed()
