# Derived from _async/checkpoint_writer.py by tools/unasync.py; edit that file.
"""Background writer of checkpoints.

`SessionProgress` is the write state of one partition session. `CheckpointWriter` writes the
positions of many partitions when they are due, one at a time for each partition.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from azure.eventhub import CheckpointStore

from eventhub_checkpoints import errors
from eventhub_checkpoints._shared import callables, tracing
from eventhub_checkpoints._shared._sync.background import Background, Signal
from eventhub_checkpoints._shared._sync.client_check import check_store
from eventhub_checkpoints._shared._sync.compat import within
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.error_messages import message_or_type
from eventhub_checkpoints._shared.settings import require, require_seconds
from eventhub_checkpoints._shared.wrapping import declares
from eventhub_checkpoints.processing import statistics
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.stall import Since, Stall
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.processing.write_state import WriteState

log = logging.getLogger("eventhub_checkpoints")

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")
"""Names that identify a partition."""
SHORTEST_WRITE = 0.05
"""Minimum remaining seconds for a write to be retried."""
GRACE = 0.5
"""Seconds that a cancelled write has to end, before it counts as hanging."""
AFTER_ERROR = 1.0
"""Seconds until a policy that raised is called again."""

OnError = Callable[[str, Exception], object]


class Finished(Protocol):
    """Finished part of a partition: the position, and the number of events it stands for."""

    @property
    def count(self) -> int: ...

    @property
    def pending(self) -> int: ...

    @property
    def position(self) -> Position | None: ...


F = TypeVar("F", bound=Finished)


class SessionProgress(Generic[F]):
    """Progress of one partition in one session: what is finished, and what is saved.

    Args:
        names: keys of its checkpoint other than the position.
        watermark: what may be saved; read under `guard`.
        policy: when to save.
        tally: counts its writes.

    Attributes:
        guard: held while `progress` or a finished position is changed, and while both are read;
            never while waiting.
        watchers: one signal for each caller that waits in `until`.
        before: earlier session of the same partition that may still be writing. This one waits for
            its last write, and writes nothing below that.
        behind_since: time when the first event was started after all before it were saved.
        flushing: time since which its last position is being written.
        is_over: whether the session has ended, so that nothing more is written.
        is_broken: whether its policy raised when it was called last.
        stall: what the watchdog has found; None: the partition has not stalled.
        trace: span whose events were finished last, the parent of the next checkpoint's; see
            `tracing.Operation.context`.
    """

    __slots__ = (
        *("before", "behind_since", "flushing", "guard", "is_broken", "is_over", "names"),
        *("partition_id", "progress", "stall", "trace", "watchers", "watermark"),
    )

    def __init__(
        self, names: Mapping[str, str], watermark: F, policy: Policy, tally: statistics.Tally
    ) -> None:
        self.names = names
        self.partition_id = names["partition_id"]
        self.watermark = watermark
        self.progress = WriteState(policy, time.monotonic(), tally)
        self.guard = threading.Lock()
        self.watchers: tuple[Signal, ...] = ()
        self.before: SessionProgress[F] | None = None
        self.behind_since = -math.inf
        self.flushing = Since()
        self.is_over = False
        self.is_broken = False
        self.stall: Stall | None = None
        self.trace: object = None

    @property
    def pending(self) -> int:
        """Number of started events after the position."""
        return self.watermark.pending

    @property
    def unsaved(self) -> int:
        """Number of events that were started and would be read again after a crash."""
        return self.watermark.count + self.pending - self.progress.saved_count

    @property
    def is_quiet(self) -> bool:
        """Return whether the session will write nothing more."""
        return self.is_over and not self.progress.is_writing

    def is_covered(self, position: Position) -> bool:
        """Return whether the earlier session has stored this position or a higher one.

        Waits for the last write of that session. A sync client may claim a partition again while
        it closes it: it lists checkpoints in one thread before the other has written the last one.
        Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `_close_consumer`.

        Raises:
            TimeoutError: the last write of the earlier session does not end.
        """
        before = self.before
        if before is None:
            return False
        if not before.until(lambda: before.is_quiet, seconds_left()):
            raise TimeoutError("the last write of the earlier session has not ended")
        reached = before.progress.saved_position
        return reached is not None and position.sequence_number <= reached.sequence_number

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, at most `seconds`; return whether it does."""
        if holds():
            return True
        end = time.monotonic() + seconds
        # One per waiting caller: another would clear the signal before this one has seen it.
        signal = Signal()
        with self.guard:
            self.watchers = (*self.watchers, signal)
        try:
            while not holds():
                signal.clear()
                # The condition may have become true before the signal was cleared.
                if not holds() and not signal.wait(end - time.monotonic()):
                    return holds()
            return True
        finally:
            with self.guard:
                self.watchers = tuple(each for each in self.watchers if each is not signal)

    def changed(self) -> None:
        """Wake the callers that wait in `until`."""
        for signal in self.watchers:
            signal.set()

    def stats(self, now: float) -> statistics.PartitionStats:
        """Return its statistics at a `time.monotonic()`."""
        with self.guard:
            progress, tally, unsaved = self.progress, self.progress.tally, self.unsaved
            behind_since = max(progress.saved_at, self.behind_since)
            stall = self.stall
            return statistics.PartitionStats(
                saved=tally.saved,
                refused=tally.refused,
                failed=tally.failed,
                pending=self.pending,
                lag_events=unsaved,
                lag_seconds=now - behind_since if unsaved else 0.0,
                position=self.watermark.position,
                saved_position=progress.saved_position,
                stalls=tally.stalls,
                stalled=stall.where if stall else None,
                stalled_seconds=stall.seconds if stall else 0.0,
            )


class CheckpointWriter:
    """Writes the due positions of many partitions, and never raises.

    The arguments are documented in `Checkpointer`.

    Attributes:
        goes_forward_only: whether the store refuses to go back.
    """

    def __init__(
        self,
        store: CheckpointStore,
        write_timeout: float,
        on_error: OnError | None,
        unhealthy_after: float,
    ) -> None:
        require_seconds("write_timeout", write_timeout)
        require_seconds("unhealthy_after", unhealthy_after)
        check_store(store)
        require("on_error", on_error, callables.is_callback(on_error), "None, or a plain function")
        self.goes_forward_only = declares(store, "forward_only")
        self._store = store
        # A third-party store may pass unknown keyword arguments on to its driver.
        self._stale = {"on_stale": "raise"} if self.goes_forward_only else {}
        self._on_error = on_error
        self._write_timeout = write_timeout
        self._unhealthy_after = unhealthy_after
        self._background = Background(self._look)
        self._changing = threading.Lock()
        self._sessions: frozenset[SessionProgress[Any]] = frozenset()
        statistics.watch(self)

    def start(self) -> None:
        """Start the background writer in this process and event loop, if there are partitions."""
        with self._changing:
            if self._sessions:
                self._background.start()

    def add(self, session: SessionProgress[Any]) -> None:
        """Add a session to those that are written."""
        with self._changing:
            # Started first: sessions without a running writer would count as unhealthy.
            self._background.start()
            # Replaced, never modified: the background writer and a liveness probe iterate over it.
            self._sessions = self._sessions | {session}
        self._background.wake()

    def end(self, session: SessionProgress[Any]) -> None:
        """Stop starting writes of a session."""
        # Under the guard, like the look that finds a write due: after this, none is found. One that
        # was found before is dropped by `_write`, or is waited for by `finish`.
        with session.guard:
            session.is_over = True
        with self._changing:
            self._sessions = self._sessions - {session}
        session.changed()

    def finish(self, session: SessionProgress[Any], seconds: float, *, flushes: bool) -> None:
        """End a session, within `seconds`, after writing everything finished if it `flushes`.

        When this returns, none of its writes runs, if the store answers.
        """
        end = time.monotonic() + seconds
        try:
            if flushes and not self.flush(session, seconds):
                log.warning(
                    "partition %s: the last position could not be saved; the events after the "
                    "saved one are read again",
                    session.partition_id,
                )
        finally:
            self.end(session)
            # The partition is released next; a later write would overwrite the next owner's.
            session.until(lambda: not session.progress.is_writing, end - time.monotonic())

    def wake(self) -> None:
        """Check now whether something is due."""
        self._background.wake()

    def is_healthy(self) -> bool:
        """Return whether checkpoints are being written."""
        now, sessions = time.monotonic(), self._sessions
        since = [each.progress.trying_since for each in sessions]
        too_long = any(at is not None and now - at > self._unhealthy_after for at in since)
        if too_long or any(each.is_broken for each in sessions):
            return False
        return self._background.is_alive or not sessions

    def stats(self) -> list[tuple[Mapping[str, str], statistics.PartitionStats]]:
        """Return the names and statistics of each partition."""
        now = time.monotonic()
        return [(each.names, each.stats(now)) for each in self._sessions]

    def _look(self) -> float:
        now, nearest = time.monotonic(), math.inf
        for session in self._sessions:
            try:
                nearest = min(nearest, self._look_at(session, now))
                session.is_broken = False
            except Exception as error:
                self._policy_raised(session, error)
                nearest = min(nearest, now + AFTER_ERROR)
        return nearest - now

    def _look_at(self, session: SessionProgress[Any], now: float) -> float:
        """Start what is due of a session; return when to look again."""
        progress, watermark = session.progress, session.watermark
        limit, due = self._write_timeout + GRACE, None
        with session.guard:
            if session.is_over:
                return math.inf
            if is_late := now >= progress.late_at(limit):
                progress.was_late()
            if now >= progress.wake_time or watermark.count >= progress.wake_count:
                due = progress.due(watermark.count, watermark.position, now)
            next_look = min(progress.wake_time, progress.late_at(limit))
            if watermark.count >= progress.wake_count:
                # A checkpoint was recorded without the guard, before the new bound was set.
                next_look = now
        # Without the guard, which `stats` takes: `on_error` is the user's, and may call that.
        if is_late:
            self._report(session.partition_id, TimeoutError(f"no answer within {limit:g} s"))
        if due is not None:
            try:
                self._background.begin(self._write, session, due, self._write_timeout)
            except RuntimeError as error:  # no thread can be started
                self._settle(session, error)
                self._report(session.partition_id, error)
        return next_look

    def _write(self, session: SessionProgress[Any], due: Due, seconds: float) -> None:
        """Write what is due of a session, within this many seconds."""
        # The session may have ended after the look that found this due and before this task or
        # thread began; then another client may hold the partition.
        if session.is_over:
            with session.guard:
                session.progress.was_dropped()
            session.changed()
            return
        # A write that was cut off may have been stored all the same: it is retried.
        error: Exception | None = TimeoutError("the write was cut off")
        is_written = False
        try:
            is_written = within(seconds, self._save, session, due.position)
            error = None
        except Exception as raised:
            is_silence = isinstance(raised, TimeoutError) and not str(raised)
            error = TimeoutError(f"no answer within {seconds:g} s") if is_silence else raised
        finally:
            self._settle(session, error, is_written)
        if error is not None:
            self._report(session.partition_id, error)

    def _save(self, session: SessionProgress[Any], position: Position) -> bool:
        """Store a position, unless the earlier session has; return whether it was stored."""
        if session.is_covered(position):
            return False
        with tracing.child_of(session.trace):
            self.put(session, position, **self._stale)
        return True

    def put(self, session: SessionProgress[Any], position: Position, **kwargs: Any) -> None:
        """Store any position, with further arguments of the store; raise what it raises."""
        row: dict[str, Any] = {
            **session.names,
            "offset": position.offset,
            "sequence_number": position.sequence_number,
        }
        self._store.update_checkpoint(row, **kwargs)

    def _settle(
        self, session: SessionProgress[Any], error: Exception | None, is_written: bool = False
    ) -> None:
        """Record the result of a write."""
        progress = session.progress
        try:
            with session.guard:
                now = time.monotonic()
                if error is None:
                    (progress.was_saved if is_written else progress.was_covered)(now)
                elif isinstance(error, errors.StaleCheckpointError):
                    progress.was_refused(now)
                else:
                    for_good = isinstance(error, errors.CheckpointStoreError) and not isinstance(
                        error, errors.StoreUnavailableError
                    )
                    progress.has_failed(now, random.random(), for_good=for_good)
        except Exception as raised:
            self._policy_raised(session, raised)
        session.changed()
        self.wake()

    def _policy_raised(self, session: SessionProgress[Any], error: Exception) -> None:
        """Record that a policy raised; the other partitions are not affected."""
        session.is_broken = True
        log.error("the policy of partition %s raised", session.partition_id, exc_info=error)
        self._call_on_error(session.partition_id, error)

    def _report(self, partition_id: str, error: Exception) -> None:
        """Report a failed write; callers are not interrupted."""
        log.warning("checkpoint of partition %s: %s", partition_id, message_or_type(error))
        self._call_on_error(partition_id, error)

    def _call_on_error(self, partition_id: str, error: Exception) -> None:
        if self._on_error is None:
            return
        try:
            callables.run(self._on_error, partition_id, error)
        except Exception:
            log.exception("on_error of partition %s raised", partition_id)

    def flush(self, session: SessionProgress[Any], seconds: float) -> bool:
        """Write everything finished of a session, within `seconds`; return whether it is saved.

        A failed write is retried, unless that would not help. A write that hangs is not waited for
        any longer.
        """
        progress, end = session.progress, time.monotonic() + seconds
        shortest = min(SHORTEST_WRITE, seconds / 2)
        # Fixed now: handlers that go on finishing events meanwhile would keep this from ending.
        goal = session.watermark.count
        while progress.saved_count < goal and not session.is_over:
            # If `seconds` is 0, so is `shortest`; `left < shortest` would be false until the clock
            # ticks, and this loop would spin, as no write begins without time left.
            if (left := end - time.monotonic()) <= 0 or left < shortest:
                return False
            self.begin_flush([session], left)
            session.until(lambda: session.is_over or not progress.is_writing, left)
            if progress.is_refused_for_good:
                return False
            pause = progress.retry_at - time.monotonic()
            if progress.saved_count < goal and pause > 0:
                session.until(lambda: session.is_over, min(pause, end - time.monotonic()))
        return bool(progress.saved_count >= goal)

    def flush_all(self, sessions: Sequence[SessionProgress[Any]], seconds: float) -> bool:
        """Write everything finished of several sessions at once; return whether it is saved."""
        end, is_saved = time.monotonic() + seconds, True
        self.begin_flush(sessions, seconds)
        for session in sessions:
            is_saved = self.flush(session, end - time.monotonic()) and is_saved
        return is_saved

    def begin_flush(self, sessions: Sequence[SessionProgress[Any]], seconds: float) -> None:
        """Start to write what is finished, in the background: a hanging store blocks no caller."""
        if seconds <= 0:
            return
        limit = min(self._write_timeout, seconds)
        for session in sessions:
            watermark = session.watermark
            with session.guard:
                due = session.progress.rest(watermark.count, watermark.position, time.monotonic())
            if due is None:
                continue
            try:
                self._background.begin(self._write, session, due, limit)
            except RuntimeError:  # no thread can be started during interpreter shutdown
                self._write(session, due, limit)
            self._background.wake()

    def begin(self, function: Callable[..., None], *args: object) -> None:
        """Call a function that does not raise in the background; `close` waits for it.

        Raises:
            RuntimeError: no thread can be started.
        """
        self._background.start()
        self._background.begin(function, *args)

    def close(self, seconds: float) -> None:
        """End everything that was started."""
        self._background.stop(seconds)
