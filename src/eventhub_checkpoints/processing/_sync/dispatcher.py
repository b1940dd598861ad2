# Derived from _async/dispatcher.py by tools/unasync.py; edit that file.
"""Dispatcher that calls a user's processor with the events of a partition.

`Dispatcher` has what all partitions share, `Dispatch` calls the processor of one session and
retries, and `PartitionHandler` opens and closes it.
"""

import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from azure.eventhub import CloseReason, EventData, PartitionContext

from eventhub_checkpoints._shared._sync.client_check import called, check_handlers
from eventhub_checkpoints._shared._sync.compat import Lock
from eventhub_checkpoints._shared.client import is_client_closed
from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.errors import ConfigurationError, PoisonError
from eventhub_checkpoints.processing._sync.checkpoint_manager import (
    CheckpointManager,
    DeliveryTracker,
    position_of,
)
from eventhub_checkpoints.processing._sync.receive_loop import HandlerTask
from eventhub_checkpoints.processing._sync.session import LOOKING, PartitionSession
from eventhub_checkpoints.processing.options import Options, require_handler

log = logging.getLogger("eventhub_checkpoints")


@dataclass(slots=True)
class Dispatcher:
    """Settings and state that the sessions of all partitions share.

    Attributes:
        make: creates the processor of a session.
        options: options of the `EventProcessor`.
        report: called with an error and its partition.
        fail: called with the error for which the whole processor has to stop.
        is_stopping: whether nothing more is started.
        stopped: partitions whose processing has stopped, and the reason.
    """

    make: Callable[[PartitionContext, CheckpointManager], Any]
    options: Options
    report: Callable[[str | None, Exception], None]
    fail: Callable[[BaseException], None]
    is_stopping: bool = False
    stopped: dict[str, PoisonError] = field(default_factory=dict)

    @property
    def is_automatic(self) -> bool:
        """Return whether events are finished when `process_events` returns."""
        return self.options.policy is not None

    def stop(self, partition_id: str, number: int, error: Exception) -> None:
        """Stop processing a partition before an event, because of this error."""
        poison = PoisonError(partition_id, number)
        poison.__cause__ = error
        self.stopped[partition_id] = poison
        log.error("%s: %r", poison, error)
        self.report(partition_id, poison)


class Dispatch:
    """Passes the events of one session to its processor.

    Attributes:
        processor: the user's object; None: not created yet.
        runner: runs its methods.
        is_over: whether no more events are passed.
        work: delivered events, and which of them are finished.
    """

    def __init__(
        self, context: PartitionContext, claim: PartitionSession, handling: Dispatcher
    ) -> None:
        self.processor: Any = None
        self.runner = HandlerTask()
        self.is_over = False
        self.work = DeliveryTracker(claim, handling.options)
        self._context = context
        self._partition_id = context.partition_id
        self._claim = claim
        self._handling = handling

    @property
    def is_ending(self) -> bool:
        """Return whether nothing more is started."""
        return self.is_over or self._handling.is_stopping

    def give(self, events: list[EventData]) -> None:
        """Process events; an empty list means that none arrived for a while.

        Raises:
            CheckpointStoreError: too many events wait for one that was given up.
        """
        if not events:
            self._attempt(events)
        elif self._has_room():
            self.work.begin(events)
            error = self._attempt(events)
            if error is not None:
                self._one_by_one(events, error)
            elif self._handling.is_automatic:
                self.work.finish()
            self.work.returned()

    def _has_room(self) -> bool:
        limit, apart = self._handling.options.max_pending, self.work.apart
        while not self._claim.until(lambda: self.is_ending or len(apart) < limit, LOOKING):
            if is_client_closed():
                return False
        if self._claim.is_stuck and self._claim.pending >= limit:
            raise self._claim.given_up()
        return not self.is_ending

    def _attempt(self, events: list[EventData]) -> BaseException | None:
        """Call the handler until it returns; return the error if it never does."""
        error: BaseException | None = None
        attempts = self._handling.options.attempts
        for attempt in range(attempts):
            if attempt:
                seconds = pause(attempt - 1, math.inf, random.random()) or 0
                if self._claim.until(lambda: self.is_ending, seconds):
                    break
            error = self.tried(self.processor.process_events, events)
            if error is None:
                break
            said = "partition %s: process_events raised, attempt %d of %d"
            log.warning(said, self._partition_id, attempt + 1, attempts, exc_info=error)
            self.tell(error)
        return error

    def _one_by_one(self, events: list[EventData], error: BaseException) -> None:
        """Find the event that cannot be processed, and apply `on_poison` to it."""
        for event in events:
            position = position_of(event)
            if self.work.has_passed(position):
                continue
            if self.is_ending:
                return
            failure = error if len(events) == 1 else self._attempt([event])
            if failure is not None and not self._passes_over(event, failure):
                return
            if self._handling.is_automatic:
                self.work.finish(position)

    def _passes_over(self, event: EventData, error: BaseException) -> bool:
        """Return whether to continue after an event that cannot be processed."""
        if self.is_ending or not isinstance(error, Exception):
            return False
        number, wanted = event.sequence_number or 0, self._handling.options.on_poison
        if callable(wanted):
            refused = self.tried(wanted, self._context, event, error)
            if refused is None:
                return True
            self.tell(refused)
        elif wanted == "skip":
            log.warning("event %d of partition %s is skipped", number, self._partition_id)
            return True
        # A failure while the partition is being closed must not stop it for its next session.
        if not self.is_ending:
            self._handling.stop(self._partition_id, number, error)
        return False

    def tried(self, function: Callable[..., Any], *args: Any) -> BaseException | None:
        """Call a user's function, return its error; stop all if it is not an `Exception`."""
        error = self.runner.tried(function, *args)
        if error is not None and not isinstance(error, Exception):
            self.fail(error)
        return error

    def fail(self, error: BaseException) -> None:
        """Pass no more events, and stop the whole processor."""
        self.is_over = True
        self._handling.fail(error)

    def tell(self, error: BaseException) -> None:
        """Pass an error to the processor's `process_error`; report what that raises."""
        hook = getattr(self.processor, "process_error", None)
        again: BaseException | None = error
        if hook is not None and isinstance(error, Exception):
            again = self.tried(hook, error)
        if isinstance(again, Exception):
            self._handling.report(self._partition_id, again)


class PartitionHandler:
    """Events of one session, from the client to the user's processor and to the checkpoint.

    Attributes:
        context: the client's context of the partition.
        claim: the session: what is finished and saved.
        waits_since: when it became ready for its first event; None: not yet.
    """

    def __init__(
        self, context: PartitionContext, claim: PartitionSession, handling: Dispatcher
    ) -> None:
        self.context = context
        self.claim = claim
        self._handling = handling
        self._giving = Dispatch(context, claim, handling)
        self._opening = Lock()
        self._is_open = False
        self.waits_since: float | None = None
        self._failure: BaseException | None = None

    @property
    def is_stopped(self) -> bool:
        """Return whether processing of the partition has stopped."""
        return self.context.partition_id in self._handling.stopped

    @property
    def newest(self) -> float:
        """Sequence number of the newest event that has arrived."""
        return self._giving.work.newest

    @property
    def has_begun(self) -> bool:
        """Return whether any event has arrived."""
        return self._giving.work.newest != -math.inf

    def open(self) -> None:
        """Create the processor, once; events wait for that.

        A sync client delivers events in a different thread than the one that opens the partition.
        """
        with self._opening:
            if not (self._is_open or self.is_stopped):
                self._is_open = True
                self._giving.runner.run(self._open)

    def _open(self) -> None:
        error = self._giving.tried(self._make)
        if isinstance(error, ConfigurationError):
            self._giving.fail(error)
        elif error is not None:
            self._giving.tell(error)
        self._failure = error
        self.waits_since = time.monotonic()

    def _make(self) -> None:
        checkpoints = CheckpointManager(self._giving.work)
        made = called(self._handling.make, self.context, checkpoints)
        require_handler(made)
        check_handlers(made)
        self._giving.processor = made
        if hasattr(made, "initialize"):
            called(made.initialize)

    def receive(self, events: list[EventData]) -> None:
        """Process what the client delivers.

        Raises:
            Exception: what creating or initializing the processor raised; the client then closes
                the partition and claims it again.
            CheckpointStoreError: too many events wait for one that was given up; likewise.
        """
        self.open()
        # Events of a stopped partition are left for the next owner.
        if self._giving.is_ending or self.is_stopped:
            return
        if self._failure is not None:
            raise self._failure
        self._giving.runner.run(self._giving.give, events)

    def tell(self, error: Exception) -> None:
        """Pass an error of the client to the processor, unless it was raised and passed here."""
        if error is not self._failure:
            self._giving.tell(error)

    def close(self, reason: CloseReason, drained_by: float) -> None:
        """Wait for running handlers, then for events finished separately, then close the processor.

        Args:
            reason: argument of the processor's `close`.
            drained_by: `time.monotonic()` until which events may finish.
        """
        giving, apart = self._giving, self._giving.work.apart
        seconds = self._handling.options.drain_timeout
        giving.is_over = True
        self.claim.changed()
        if not giving.runner.end(drained_by - time.monotonic()):
            self._warn("the handler did not end, and was cut off")
        if not self.claim.until(lambda: not apart, drained_by - time.monotonic()):
            self._warn(f"{len(apart)} events that were left behind are unfinished")
        if hasattr(giving.processor, "close"):
            giving.runner.begin(self._close, reason)
            if not giving.runner.end(seconds):
                giving.tell(TimeoutError(f"close() did not end within {seconds:g} s"))

    def _close(self, reason: CloseReason) -> None:
        error = self._giving.tried(self._giving.processor.close, reason)
        if error is not None:
            self._giving.tell(error)

    def _warn(self, what: str) -> None:
        log.warning("partition %s: %s", self.context.partition_id, what)
