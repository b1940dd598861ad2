"""One event that is being processed."""

from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from eventhub_checkpoints._shared._async.client_check import ContextGuard
from eventhub_checkpoints.processing import watermark
from eventhub_checkpoints.processing._async.session import PartitionSession

ANNOUNCED_WITHIN = 0.0
"""Seconds after a first event in which its partition is announced: this client does it before."""


class Ticket(ContextGuard, watermark.Ticket):
    """One event that is being processed: `async with` it, or await it and call `done`.

    Leaving the `async with` finishes it; leaving it by an exception gives it up. What was awaited
    may be handed to a task that does `async with` it. `done` and `failed` may be called in any
    thread.
    """

    __slots__ = ("_claim", "_event", "_is_begun")
    twin = "Checkpointer"

    def __init__(self, claim: PartitionSession, event: Any) -> None:
        # Not by the base's `__init__`: it is done for every event.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._claim = claim
        # An event that is not held might be gone, and its id another's.
        self._event = event
        self._is_begun = False

    def __await__(self) -> Generator[Any, None, Self]:
        if not self._is_begun:
            claim = self._claim
            while not (self._is_begun or claim.enter(self, self._event)):
                yield from claim.wait_for_room().__await__()
            self._is_begun = True
        return self

    def __aenter__(self) -> Self:
        return self  # which is awaited

    async def __aexit__(
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
        if not self._is_begun:
            raise RuntimeError("this event was not begun: `await` what track() returns")
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
