# Derived from _async/dispatcher.py by tools/unasync.py; edit that file.
"""Dispatcher that calls a user's processor with the events of a partition.

`PartitionProcessor` is the base of the user's class, which saves checkpoints through the
`CheckpointManager` that it is passed. `PartitionHandler` opens the processor of a session, calls
it, retries, and closes it. The session knows which events are finished.
"""

import logging
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, overload

from azure.eventhub import CloseReason, EventData, PartitionContext

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared._sync.client_check import (
    called,
    check_handlers,
    reports_blocking,
)
from eventhub_checkpoints._shared._sync.compat import Lock
from eventhub_checkpoints._shared.callables import NothingRanError
from eventhub_checkpoints._shared.deadline import backoff
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError, PoisonError
from eventhub_checkpoints.processing._sync.receive_loop import HandlerTask
from eventhub_checkpoints.processing._sync.session import LOOKING, PartitionSession
from eventhub_checkpoints.processing._sync.tracked_event import TrackedBatchEvent, TrackedEvent
from eventhub_checkpoints.processing.options import Options, require_client_of, require_handler
from eventhub_checkpoints.processing.stall import Snapshot
from eventhub_checkpoints.processing.watermark import Position, Row
from eventhub_checkpoints.records import checked_offset, checked_sequence_number
from eventhub_checkpoints.sdk.stack import is_client_closed

log = logging.getLogger("eventhub_checkpoints")


class PartitionProcessor:
    """Processor of one partition, from when it is claimed until it is closed.

    A base class with empty methods; any class with `process_events` works as well. If the client is
    a `BatchConsumerClient`, a class has `process_batch(batch)` instead, which is passed a
    `pyarrow.RecordBatch`.

    Args:
        context: the client's context of the partition: `partition_id` and the names.
        checkpoints: saves the position of the partition.
    """

    def __init__(self, context: PartitionContext, checkpoints: "CheckpointManager") -> None:
        self.context = context
        self.checkpoints = checkpoints

    def initialize(self) -> None:
        """Prepare for the first events; called once, and finished before any is processed.

        If it raises, nothing is processed: the partition is closed when its next events arrive,
        and claimed again.
        """

    def process_events(self, events: list[EventData]) -> None:
        """Process the next events, in order; they are finished when this returns.

        An exception is passed to `process_error`, and the events are processed again; see
        `EventProcessor`.

        Args:
            events: at most `max_batch_size`; empty if `max_wait_time` has passed without an event.
        """
        raise NotImplementedError(f"{type(self).__name__} has no process_events")

    def process_error(self, error: Exception) -> None:
        """Handle an exception of another method, or an error of the client for this partition.

        An aio client may report an error while `process_events` runs. An exception raised here is
        passed to `on_error`.
        """

    def close(self, reason: CloseReason) -> None:
        """Clean up; called once, after the last event and before the last checkpoint.

        It is called even if `initialize` has raised.

        Args:
            reason: `SHUTDOWN` if the processor stops; `OWNERSHIP_LOST` if another owner has taken
                the partition or has asked for it, and after any error while receiving.
        """


def position_of(event: EventData) -> Position:
    """Return the position of an event."""
    return Position(checked_sequence_number(event.sequence_number), event.offset or "")


def rows_of(events: Sequence[EventData]) -> list[Row]:
    """Split a batch into rows of ascending sequence numbers.

    There is more than one row if numbers decrease, which happens after a link was reopened.
    """
    first, last = position_of(events[0]), position_of(events[-1])
    numbers = range(first.sequence_number, last.sequence_number + 1)
    if len(numbers) == len(events):
        return [Row(numbers, last)]
    rows: list[tuple[list[int], Position]] = []
    for position in map(position_of, events):
        number = position.sequence_number
        if rows and rows[-1][0][-1] < number:
            rows[-1] = (rows[-1][0], position)
        else:
            rows.append(([], position))
        rows[-1][0].append(number)
    return [Row(*row) for row in rows]


def named_in_log(events: Sequence[EventData]) -> str:
    """Return which events a call of `process_events` was made with."""
    if not events:
        return "no event"
    first, last = events[0].sequence_number, events[-1].sequence_number
    return f"event {first}" if len(events) == 1 else f"events {first} to {last}"


class CheckpointManager:
    """Saves the position of one partition, for one session."""

    def __init__(self, session: PartitionSession, options: Options) -> None:
        self._session = session
        self._options = options

    @overload
    def update_checkpoint(self, event: EventData) -> bool: ...

    @overload
    def update_checkpoint(self, offset: str | None, sequence_number: int, /) -> bool: ...

    @overload
    def update_checkpoint(self, *, offset: str | None = None, sequence_number: int) -> bool: ...

    def update_checkpoint(
        self,
        event: EventData | str | None = None,
        sequence_number: int | None = None,
        *,
        offset: str | None = None,
    ) -> bool:
        """Finish every event up to this one, and save the position now.

        Pass an event, an offset and a sequence number, or the batch that the running call of
        `process_batch` was passed. An event that was passed to `track` and is not done still holds
        the position back.

        Returns:
            Whether the position is stored. If not, either the error was passed to `on_error` and
            the write is retried in the background; or the session is over, or saving is disabled;
            or it is a batch without rows.

        Raises:
            InvalidRecordError: the sequence number is invalid, or higher than that of every event
                that was passed to `process_events`.
        """
        if event is None and sequence_number is None:
            raise InvalidRecordError("event", None, "an event, or an offset and a sequence number")
        if event is None or isinstance(event, str):
            number = checked_sequence_number(sequence_number)
            return self._save(Position(number, checked_offset(event or offset, number)))
        passed = self._session.passed
        if event is getattr(passed, "arrow", None):
            return bool(passed) and self._save(position_of(passed[-1]))
        if not hasattr(event, "sequence_number"):
            expected = "an event, the batch that was passed, or an offset as a string"
            raise InvalidRecordError("event", type(event), expected)
        return self._save(position_of(event))

    def _save(self, position: Position) -> bool:
        session, number = self._session, position.sequence_number
        if number > session.watermark.newest:
            expected = "the number of an event that was passed to process_events"
            raise InvalidRecordError("sequence_number", number, expected)
        session.trace = tracing.current_context()
        session.finish(position)
        if session.is_over or not self._options.save:
            return False
        is_saved = session.writer.flush(session, self._options.write_timeout)
        return is_saved and session.has_passed(position)

    def track(self, event: EventData) -> TrackedEvent:
        """Finish an event separately, so that `process_events` may return before it is done.

        Args:
            event: one of the events of the current call of `process_events`.

        Raises:
            InvalidRecordError: it is not one of them.
        """
        session = self._session
        index = session.index_of(event)
        if index is None:
            expected = "an event of the running call of process_events"
            number = getattr(event, "sequence_number", type(event))
            raise InvalidRecordError("event", number, expected)
        previous = position_of(session.batch[index - 1]) if index else None
        tracked = TrackedBatchEvent(session, event)
        if session.take_out(tracked, event, previous):
            tracked.begin()
        else:
            # The event was finished or removed before, so do not wait for it.
            tracked.release()
        return tracked


@dataclass(slots=True, eq=False, repr=False)
class ProcessorRun:
    """Settings and state of one run of a processor, shared by its partitions.

    Attributes:
        make: creates the processor of a session.
        options: options of the `EventProcessor`.
        report: called with an error and its partition.
        fail: called with an error that must stop the whole processor.
        is_stopping: whether the processor is stopping, so that no more events are processed.
        stopped: partitions whose processing has stopped, and the reason.
        delivers_batches: whether the client delivers Arrow batches, as `PartitionBatch`.
        said: sentences that were logged, each once.
    """

    make: Callable[[PartitionContext, CheckpointManager], Any]
    options: Options
    report: Callable[[str | None, Exception], None]
    fail: Callable[[BaseException], None]
    is_stopping: bool = False
    delivers_batches: bool = False
    stopped: dict[str, PoisonError] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    def warn_once(self, sentence: str) -> None:
        """Log a sentence, the first time in this run."""
        if sentence not in self.said:
            self.said.add(sentence)
            log.warning("%s; this is logged once", sentence)


class PartitionHandler:
    """Passes the events of one session to the user's processor, and finishes them.

    Attributes:
        context: the client's context of the partition.
        session: what was delivered, is finished and is saved.
        waits_since: when it became ready for its first event; None: not yet.
    """

    def __init__(
        self, context: PartitionContext, session: PartitionSession, run: ProcessorRun
    ) -> None:
        self.context = context
        self.session = session
        self.waits_since: float | None = None
        self._partition_id = context.partition_id
        self._run = run
        self._processor: Any = None
        self._process_events: Any = None
        self._name = ""
        self._task = HandlerTask()
        self._opening = Lock()
        self._is_open = self._is_over = False
        self._failure: BaseException | None = None
        # For the watchdog: calls of the client that run, and methods of the processor that ended.
        self._calls: set[object] = set()
        self._ended = 0

    @property
    def has_begun(self) -> bool:
        """Return whether any event has arrived."""
        return self.session.watermark.newest != -math.inf

    @property
    def _is_stopped(self) -> bool:
        """Return whether processing of the partition has stopped."""
        return self._partition_id in self._run.stopped

    @property
    def _is_ending(self) -> bool:
        """Return whether no more events may be processed."""
        return self._is_over or self._run.is_stopping

    def open(self) -> None:
        """Create the processor unless it exists; if another call is creating it, wait for that.

        A sync client delivers events in another thread than the one that opens the partition.
        """
        with self._called():
            self._open_once()

    def _open_once(self) -> None:
        with self._opening:
            if not (self._is_open or self._is_stopped):
                self._is_open = True
                self._task.run(self._open)

    def _open(self) -> None:
        error = self._try(self._make)
        if isinstance(error, ConfigurationError):
            self._fail(error)
        elif error is not None:
            self._process_error(error)
        self._failure = error
        self.waits_since = time.monotonic()

    def _make(self) -> None:
        checkpoints = CheckpointManager(self.session, self._run.options)
        processor = called(self._run.make, self.context, checkpoints)
        require_handler(processor)
        require_client_of(processor, delivers_batches=self._run.delivers_batches)
        check_handlers(processor)
        self._processor = processor
        self._name = "process_batch" if self._run.delivers_batches else "process_events"
        name = f"{self._name} of {type(processor).__qualname__}"
        handler = getattr(processor, self._name)
        self._process_events = reports_blocking(name, handler, self._run.warn_once)
        if hasattr(processor, "initialize"):
            called(processor.initialize)

    def receive(self, events: Sequence[EventData]) -> None:
        """Process what the client delivers; an empty list means that none arrived for a while.

        Raises:
            Exception: what creating or initializing the processor raised; the client then closes
                the partition and claims it again.
            CheckpointStoreError: too many events wait behind one that has failed; likewise.
        """
        self.open()
        # Events of a stopped partition are left for the next owner.
        if self._is_ending or self._is_stopped:
            return
        if self._failure is not None:
            raise self._failure
        with self._called():
            self._task.run(self._dispatch, events)

    @contextmanager
    def _called(self) -> Iterator[None]:
        """Count the block as a call of the client that runs."""
        call = object()
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)

    def snapshot(self, reached: int | None) -> Snapshot:
        """Return what the watchdog has to know.

        Args:
            reached: number of the last event received, or after which the partition was opened.
        """
        session = self.session
        snapshot = session.snapshot()
        is_busy = bool(self._calls or session.begun)
        if self._run.options.policy is not None:
            # Otherwise events are unfinished until the processor asks for a checkpoint.
            is_busy = is_busy or snapshot.is_busy
        is_ending = self._is_ending or self._is_stopped or (is_busy and session.source.is_drained)
        return snapshot._replace(
            worked=(snapshot.worked, self._ended),
            is_busy=is_busy,
            reached=reached,
            is_ending=snapshot.is_ending or is_ending,
        )

    def _dispatch(self, events: Sequence[EventData]) -> None:
        if not events:
            self._try_alone(events, 1)
        elif self._has_room():
            self.session.begin(events, rows_of(events))
            tracing.received(self.session.key, len(events))
            self._process(events)
            self.session.returned()

    def _has_room(self) -> bool:
        session, limit = self.session, self._run.options.max_pending
        tracked = session.begun
        while not session.until(lambda: self._is_ending or len(tracked) < limit, LOOKING):
            if is_client_closed():
                return False
        if session.is_stuck and session.pending >= limit:
            raise session.stuck_error()
        return not self._is_ending

    def _process(self, events: Sequence[EventData]) -> None:
        """Process a batch, so that no event is passed to the handler more than `attempts` times.

        A batch that fails does not tell which of its events cannot be processed. So only the first
        attempt is made with all of them, and each of the others with one event: an event that can
        be processed runs twice at most, and one that cannot runs `attempts` times. With one attempt
        there is none with all of them.
        """
        attempt = 1
        if len(events) > 1 and self._run.options.attempts > 1:
            error = self._call(events)
            if error is None:
                if self._run.options.policy is not None:
                    self.session.finish()
                return
            self._failed(events, error, attempt)
            attempt += 1
            if self._pauses(attempt):
                return
        for at, event in enumerate(events):
            position = position_of(event)
            # The handler may have finished some of them before it raised.
            if self.session.has_passed(position):
                continue
            if self._is_ending:
                return
            failure = self._try_alone(events[at : at + 1], attempt)
            if failure is not None and not self._passes_over(event, failure):
                return
            if self._run.options.policy is not None:
                self.session.finish(position)

    def _try_alone(self, events: Sequence[EventData], attempt: int) -> BaseException | None:
        """Call `process_events` until it succeeds; return the last error if all attempts fail.

        Args:
            events: one, or none if no event has arrived for a while.
            attempt: number of the first attempt.
        """
        error = self._call(events)
        while error is not None:
            self._failed(events, error, attempt)
            attempt += 1
            if attempt > self._run.options.attempts or self._pauses(attempt):
                break
            error = self._call(events)
        return error

    def _pauses(self, attempt: int) -> bool:
        """Wait before an attempt that is not the first; return whether it must not be made."""
        seconds = backoff(attempt - 2, random.random())
        return self.session.until(lambda: self._is_ending, seconds)

    def _call(self, events: Sequence[EventData]) -> BaseException | None:
        """Call `process_events` once; return its error."""
        with tracing.process_batch(self.session.key, events) as operation:
            self.session.passed = events
            error = self._try(self._process_events, getattr(events, "arrow", events))
            self.session.passed = ()
            if error is not None:
                operation.fail(error)
        if operation.context is not None:
            self.session.trace = operation.context
        return error

    def _failed(self, events: Sequence[EventData], error: BaseException, attempt: int) -> None:
        """Log that an attempt has failed, and call `process_error`."""
        attempts = self._run.options.attempts
        what = named_in_log(events)
        then = "; from now on each of them is passed alone" if len(events) > 1 else ""
        message = "partition %s: %s raised for %s, attempt %d of %d%s"
        values = self._partition_id, self._name, what, attempt, attempts, then
        log.warning(message, *values, exc_info=error)
        self._process_error(error)

    def _passes_over(self, event: EventData, error: BaseException) -> bool:
        """Return whether to continue after an event that cannot be processed."""
        if self._is_ending or not isinstance(error, Exception):
            return False
        number, on_poison = event.sequence_number or 0, self._run.options.on_poison
        if callable(on_poison):
            on_poison = reports_blocking("on_poison", on_poison, self._run.warn_once)
            again = self._try(on_poison, self.context, event, error)
            if again is None:
                return True
            self._process_error(again)
        elif on_poison == "skip":
            log.warning("event %d of partition %s is skipped", number, self._partition_id)
            return True
        # A failure while the partition is being closed must not affect the next session.
        if not self._is_ending:
            poison = PoisonError(self._partition_id, number)
            poison.__cause__ = error
            self._run.stopped[self._partition_id] = poison
            log.error("%s: %s", poison, described(error))
            self._run.report(self._partition_id, poison)
        return False

    def _try(self, function: Callable[..., Any], *args: Any) -> BaseException | None:
        """Call a user's function; return its error.

        Stops all if the error is no `Exception`, or the function did nothing but return.
        """
        error = self._task.try_call(function, *args)
        self._ended += 1
        # Where nothing ran, nothing will: neither a further attempt nor skipping the event helps.
        if isinstance(error, NothingRanError) or not isinstance(error, Exception | None):
            self._fail(error)
        return error

    def _fail(self, error: BaseException) -> None:
        """Stop passing events, and stop the whole processor."""
        self._is_over = True
        self._run.fail(error)

    def process_error(self, error: Exception) -> None:
        """Pass an error of the client to the processor, unless creating the processor raised it."""
        if error is not self._failure:
            self._process_error(error)

    def _process_error(self, error: BaseException) -> None:
        """Pass an error to the processor's `process_error`; report what that raises.

        Without that method, report the error itself.
        """
        hook = getattr(self._processor, "process_error", None)
        again: BaseException | None = error
        if hook is not None and isinstance(error, Exception):
            again = self._try(hook, error)
        if isinstance(again, Exception):
            self._run.report(self._partition_id, again)

    def close(self, reason: CloseReason, drained_by: float) -> None:
        """Wait for running handlers, then for events finished separately, then close the processor.

        Args:
            reason: argument of the processor's `close`.
            drained_by: `time.monotonic()` until which events may finish.
        """
        tracked, seconds = self.session.begun, self._run.options.drain_timeout
        self._is_over = True
        self.session.changed()
        if not self._task.end(drained_by - time.monotonic()):
            self._warn("the handler did not end, and was cut off")
        if not self.session.until(lambda: not tracked, drained_by - time.monotonic()):
            self._warn(f"{len(tracked)} events that were passed to track() are unfinished")
        if hasattr(self._processor, "close"):
            self._task.begin(self._close, reason)
            if not self._task.end(seconds):
                error = TimeoutError(f"close() did not end within {seconds:g} s")
                self._process_error(error)

    def _close(self, reason: CloseReason) -> None:
        error = self._try(self._processor.close, reason)
        if error is not None:
            self._process_error(error)

    def _warn(self, message: str) -> None:
        log.warning("partition %s: %s", self._partition_id, message)
