# Not derived: edit this file and its async twin together.
"""Event that is being processed."""

from types import TracebackType
from typing import Any, Self

from eventhub_checkpoints._shared._sync.client_check import ContextGuard
from eventhub_checkpoints.processing import watermark
from eventhub_checkpoints.processing._sync.session import PartitionSession

ANNOUNCED_WITHIN = 1.0
"""Seconds within which a partition is opened after its first event, by another thread."""


class Ticket(ContextGuard, watermark.Ticket):
    """Event that is being processed: use it in `with`, or call `done`.

    Leaving the `with` block finishes the event; leaving it by an exception gives it up. `done` and
    `failed` may be called in any thread.
    """

    __slots__ = ("_claim", "_event")
    twin = "Checkpointer"

    def __init__(self, claim: PartitionSession, event: Any) -> None:
        # The base's `__init__` is not called, for speed: this runs for every event.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._claim = claim
        # Held, since the id of an event that is no longer referenced may be reused.
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
        """Finish the event; has no effect a second time, or after its session has ended."""
        claim = self._claim
        is_due = claim.leave(self, self._event)
        self._event = None
        if is_due:
            claim.saver.wake()
        if claim.watchers:
            claim.changed()

    def failed(self) -> None:
        """Give the event up: it is read again when the partition is claimed again."""
        claim = self._claim
        with claim.guard:
            self.has_failed = True
            claim.forget(self._event)
        self._event = None
        claim.changed()
