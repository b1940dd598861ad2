"""Event that is tracked until it is finished."""

from collections.abc import Generator
from typing import Any, Self

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._async.client_check import ContextGuard
from eventhub_checkpoints.processing._async.session import PartitionSession
from eventhub_checkpoints.processing.watermark import InFlightEvent

ANNOUNCED_WITHIN = 0.0
"""Maximum seconds from the first event to the opening of its partition; here, that comes first."""


class TrackedEvent(ContextGuard, InFlightEvent):
    """Event that is being processed: use it in `async with`, or await it and call `done`.

    Leaving the `async with` block finishes the event; an exception marks it as failed. Once
    awaited, it may be passed to a task that uses it in `async with`. `done` and `failed` may be
    called in any thread.

    One that `CheckpointManager.track` returns need not be awaited. When `max_pending` events wait
    behind one of those that has failed, the partition is closed, so that it is claimed again.
    """

    __slots__ = ("_event", "_is_begun", "_is_block", "_operation", "_session")
    twin = "Checkpointer"

    def __init__(self, session: PartitionSession, event: Any) -> None:
        # The base's `__init__` is not called, for speed: this runs for every event.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._session = session
        # Keep a reference: Python may reuse the id of a deleted event.
        self._event = event
        self._is_begun = self._is_block = False
        self._operation = tracing.UNTRACED

    def __await__(self) -> Generator[Any, None, Self]:
        if not self._is_begun:
            session = self._session
            while not (self._is_begun or session.enter(self, self._event)):
                yield from session.wait_for_room().__await__()
            self._is_begun = True
            tracing.received(session.key, 1)
            self._operation = tracing.process_event(session.key, self._event)
        if self._is_block:
            self._operation.attach()
        return self

    def __aenter__(self) -> Self:
        self._is_block = True
        return self  # the caller awaits it

    async def __aexit__(
        self, exc_type: object, exc_value: BaseException | None, traceback: object
    ) -> None:
        self._operation.detach()
        if exc_value is None:
            self.done()
        else:
            self._operation.fail(exc_value)
            self.failed()

    def done(self) -> None:
        """Finish the event; has no effect a second time, or after its session has ended."""
        if not self._is_begun:
            raise RuntimeError("this event was not begun: `await` what track() returns")
        session = self._session
        if self._operation is not tracing.UNTRACED:
            self._operation.end()
            session.trace = self._operation.context
        session.leave(self, self._event)
        self._event = None

    def failed(self) -> None:
        """Mark the event as failed: it is read again when the partition is claimed again."""
        self._operation.fail(None)
        self._session.fail(self, self._event)
        self._event = None


class TrackedBatchEvent(TrackedEvent):
    """Event of a batch that is finished separately, after `process_events` has returned."""

    __slots__ = ()
    twin = "EventProcessor"

    def __init__(self, session: PartitionSession, event: Any) -> None:
        # It is in the watermark already, as a part of its batch.
        self.position = event.sequence_number, event.offset or ""
        self.size, self.is_done, self.has_failed = 1, False, False
        self._session, self._event = session, event
        self._is_begun, self._is_block = True, False
        self._operation = tracing.UNTRACED

    def begin(self) -> None:
        """Start the span of the event, a child of its batch's."""
        self._operation = tracing.process_event(self._session.key, self._event)

    def done(self) -> None:
        """Finish the event; has no effect a second time, or after its session has ended."""
        if self._event is not None:
            super().done()

    def release(self) -> None:
        """Disable `done` and `failed`: the event was finished or removed before."""
        self._event = None
