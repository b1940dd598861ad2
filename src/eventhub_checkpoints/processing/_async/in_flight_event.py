"""Event that is being processed."""

from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from eventhub_checkpoints._shared._async.client_check import ContextGuard
from eventhub_checkpoints.processing import watermark
from eventhub_checkpoints.processing._async.session import PartitionSession

ANNOUNCED_WITHIN = 0.0
"""Seconds within which a partition is opened after its first event: this client opens it first."""


class Ticket(ContextGuard, watermark.Ticket):
    """Event that is being processed: use it in `async with`, or await it and call `done`.

    Leaving the `async with` block finishes the event; leaving it by an exception gives it up. An
    awaited ticket may be passed to a task that uses it in `async with`. `done` and `failed` may be
    called in any thread.
    """

    __slots__ = ("_claim", "_event", "_is_begun")
    twin = "Checkpointer"

    def __init__(self, claim: PartitionSession, event: Any) -> None:
        # The base's `__init__` is not called, for speed: this runs for every event.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._claim = claim
        # Held, since the id of an event that is no longer referenced may be reused.
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
        return self  # the caller awaits it

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
        """Finish the event; has no effect a second time, or after its session has ended."""
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
        """Give the event up: it is read again when the partition is claimed again."""
        claim = self._claim
        with claim.guard:
            self.has_failed = True
            claim.forget(self._event)
        self._event = None
        claim.changed()
