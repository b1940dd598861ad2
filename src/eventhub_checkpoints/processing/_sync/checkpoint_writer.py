# Derived from _async/checkpoint_writer.py by tools/unasync.py; edit that file.
"""Background writer of checkpoints.

`SessionProgress` is the write state of one partition session, `PositionWriter` writes one position,
and `CheckpointWriter` writes those of many partitions when they are due, one at a time for each
partition.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.background import Background, Signal
from eventhub_checkpoints._shared._sync.client_check import check_store
from eventhub_checkpoints._shared._sync.compat import within
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints._shared.settings import is_callback, is_seconds, require
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.processing import statistics as _metrics
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.processing.write_state import Since, WriteState

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")
"""Names that identify a partition."""


class Finished(Protocol):
    """Finished part of a partition: the position, and the number of events it stands for."""

    @property
    def count(self) -> int: ...

    @property
    def position(self) -> Position | None: ...


F = TypeVar("F", bound=Finished)


class SessionProgress(Generic[F]):
    """Progress of one partition in one session: what is finished, and what is saved.

    Args:
        names: keys of its checkpoint other than the position.
        finished: what may be saved; read under `guard`.
        policy: when to save.
        tally: counts its writes.

    Attributes:
        partition_id: the partition.
        guard: held while `finished` or `progress` is read or changed, never while waiting.
        watchers: one signal for each caller that waits in `until`.
        before: earlier session of the same partition that this one may have overlapped; its last
            write comes first, and no position below that is written.
        behind_since: time when the first event was started after all before it were saved.
        flushing: time since which its last position is being written.
        is_over: whether the session has ended, so that nothing more is written.
        is_broken: whether its policy raised when it was called last.
    """

    __slots__ = (
        *("before", "behind_since", "finished", "flushing", "guard", "is_broken", "is_over"),
        *("names", "partition_id", "progress", "watchers"),
    )

    def __init__(self, names: Mapping[str, str], finished: F, policy: Policy, tally: Tally) -> None:
        self.names = names
        self.partition_id = names["partition_id"]
        self.finished = finished
        self.progress = WriteState(policy, time.monotonic(), tally)
        self.guard = threading.Lock()
        self.watchers: tuple[Signal, ...] = ()
        self.before: SessionProgress[F] | None = None
        self.behind_since = -math.inf
        self.flushing = Since()
        self.is_over = False
        self.is_broken = False

    @property
    def has_rest(self) -> bool:
        """Return whether something finished is not saved."""
        return self.finished.count > self.progress.saved_count

    @property
    def pending(self) -> int:
        """Number of events that were started and that the position has not passed."""
        return 0

    @property
    def unsaved(self) -> int:
        """Number of events that were started and would be read again after a crash."""
        return self.finished.count + self.pending - self.progress.saved_count

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing of it will be written any more."""
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
            raise TimeoutError("the claim before is still being saved")
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
                self.watchers = tuple(one for one in self.watchers if one is not signal)

    def changed(self) -> None:
        """Wake the callers that wait in `until`."""
        for signal in self.watchers:
            signal.set()

    def stats(self, now: float) -> PartitionStats:
        """Return its statistics.

        Args:
            now: current `time.monotonic()`.
        """
        with self.guard:
            progress, tally, unsaved = self.progress, self.progress.tally, self.unsaved
            behind_since = max(progress.saved_at, self.behind_since)
            return PartitionStats(
                saved=tally.saved,
                refused=tally.refused,
                failed=tally.failed,
                pending=self.pending,
                lag_events=unsaved,
                lag_seconds=now - behind_since if unsaved else 0.0,
                position=self.finished.position,
                saved_position=progress.saved_position,
            )


log = logging.getLogger("eventhub_checkpoints")

OnError = Callable[[str, Exception], object]


class PositionWriter:
    """Writes positions, and never raises.

    Args:
        store: the checkpoint store.
        on_error: called with the partition id and the error.
        settled: called when a write has ended.

    Attributes:
        goes_forward_only: whether the store refuses to go back.
    """

    def __init__(
        self, store: CheckpointStore, on_error: OnError | None, settled: Callable[[], None]
    ) -> None:
        check_store(store)
        require("on_error", on_error, is_callback(on_error), "None, or a plain function")
        self.goes_forward_only = bool(getattr(store, "forward_only", False))
        self._store = store
        # A third-party store may pass unknown keyword arguments on to its driver.
        self._stale = {"on_stale": "raise"} if self.goes_forward_only else {}
        self._on_error = on_error
        self._settled = settled

    def write(self, one: SessionProgress[Any], due: Due, seconds: float) -> None:
        """Write what is due of a partition, within this many seconds."""
        # Another client may hold the partition if the session is over.
        if one.is_over:
            with one.guard:
                one.progress.was_dropped()
            one.changed()
            return
        # A write that was cut off may have been stored all the same: it is retried.
        error: Exception | None = TimeoutError("the write was cut off")
        is_written = False
        try:
            is_written = within(seconds, self._save, one, due.position)
            error = None
        except Exception as raised:
            is_silence = isinstance(raised, TimeoutError) and not str(raised)
            error = TimeoutError(f"no answer within {seconds:g} s") if is_silence else raised
        finally:
            self._settle(one, error, is_written)
        if error is not None:
            self.report(one.partition_id, error)

    def _save(self, one: SessionProgress[Any], position: Position) -> bool:
        """Store a position, unless the earlier session has; return whether it was stored."""
        if one.is_covered(position):
            return False
        self.put(one, position, **self._stale)
        return True

    def was_not_begun(self, one: SessionProgress[Any], error: Exception) -> None:
        """Record that a write could not even be started."""
        self._settle(one, error)
        self.report(one.partition_id, error)

    def _settle(
        self, one: SessionProgress[Any], error: Exception | None, is_written: bool = False
    ) -> None:
        try:
            with one.guard:
                now = time.monotonic()
                if error is None:
                    (one.progress.was_saved if is_written else one.progress.was_covered)(now)
                elif isinstance(error, StaleCheckpointError):
                    one.progress.was_refused(now)
                else:
                    for_good = isinstance(error, CheckpointStoreError) and not isinstance(
                        error, StoreUnavailableError
                    )
                    one.progress.has_failed(now, random.random(), for_good=for_good)
        except Exception as raised:
            self.broke(one, raised)
        one.changed()
        self._settled()

    def broke(self, one: SessionProgress[Any], error: Exception) -> None:
        """Record that a policy raised; the other partitions are not affected."""
        one.is_broken = True
        log.error("the policy of partition %s raised", one.partition_id, exc_info=error)
        self._tell(one.partition_id, error)

    def put(self, one: SessionProgress[Any], position: Position, **kwargs: Any) -> None:
        """Store a position; raise what the store raises.

        Args:
            one: the partition.
            position: any position.
            **kwargs: further arguments of the store.
        """
        row: dict[str, Any] = {
            **one.names,
            "offset": position.offset,
            "sequence_number": position.sequence_number,
        }
        self._store.update_checkpoint(row, **kwargs)

    def report(self, partition_id: str, error: Exception) -> None:
        """Report a failed write; this interrupts nobody."""
        log.warning("checkpoint of partition %s: %s", partition_id, str(error) or repr(error))
        self._tell(partition_id, error)

    def _tell(self, partition_id: str, error: Exception) -> None:
        if self._on_error is None:
            return
        try:
            self._on_error(partition_id, error)
        except Exception:
            log.exception("on_error of partition %s raised", partition_id)


SHORTEST_WRITE = 0.05
"""Minimum number of seconds left for which a write is started again."""
GRACE = 0.5
"""Seconds that a cancelled write has to end, before it counts as hanging."""
AFTER_ERROR = 1.0
"""Seconds until a policy that raised is called again."""


class CheckpointWriter:
    """Writes the due positions of many partitions, and never raises.

    Args:
        store: the checkpoint store.
        write_timeout: seconds that one write may take.
        on_error: called with the partition id and the error.
        unhealthy_after: seconds for which the writes of a partition may fail.
    """

    def __init__(
        self,
        store: CheckpointStore,
        write_timeout: float,
        on_error: OnError | None,
        unhealthy_after: float,
    ) -> None:
        for name, value in (("write_timeout", write_timeout), ("unhealthy_after", unhealthy_after)):
            require(name, value, is_seconds(value), "seconds, above 0")
        self._writer = PositionWriter(store, on_error, self.wake)
        self._write_timeout = write_timeout
        self._unhealthy_after = unhealthy_after
        self._background = Background(self._look)
        self._changing = threading.Lock()
        self._all: frozenset[SessionProgress[Any]] = frozenset()
        _metrics.watch(self)

    @property
    def goes_forward_only(self) -> bool:
        """Return whether the store refuses to go back."""
        return self._writer.goes_forward_only

    def start(self) -> None:
        """Start the background writer in this process and event loop, if there are partitions."""
        with self._changing:
            if self._all:
                self._background.start()

    def add(self, one: SessionProgress[Any]) -> None:
        """Add a partition to those that are written."""
        with self._changing:
            # Started first: partitions without a running writer would count as unhealthy.
            self._background.start()
            self._all = self._all | {one}
        self._background.wake()

    def end(self, one: SessionProgress[Any]) -> None:
        """Start no more writes of a partition."""
        with one.guard:
            one.is_over = True
        with self._changing:
            self._all = self._all - {one}
        one.changed()

    def finish(self, one: SessionProgress[Any], seconds: float, *, flushes: bool) -> None:
        """End a session: when this returns, none of its writes runs, if the store answers.

        Args:
            one: the partition in that session.
            seconds: maximum duration.
            flushes: whether everything finished is written first.
        """
        end = time.monotonic() + seconds
        try:
            if flushes and not self.flush(one, seconds):
                log.warning(
                    "partition %s: the last is not saved; it is read again", one.partition_id
                )
        finally:
            self.end(one)
            # The partition is released next; a later write would overwrite the next owner's.
            one.until(lambda: not one.progress.is_writing, end - time.monotonic())

    def wake(self) -> None:
        """Check now whether something is due."""
        self._background.wake()

    def is_healthy(self) -> bool:
        """Return whether checkpoints are being written."""
        now, everything = time.monotonic(), self._all
        since = [one.progress.trying_since for one in everything]
        too_long = any(one is not None and now - one > self._unhealthy_after for one in since)
        if too_long or any(one.is_broken for one in everything):
            return False
        return self._background.is_alive or not everything

    def stats(self) -> list[tuple[Mapping[str, str], PartitionStats]]:
        """Return the names and statistics of each partition."""
        now = time.monotonic()
        return [(one.names, one.stats(now)) for one in self._all]

    def _look(self) -> float:
        now, nearest = time.monotonic(), math.inf
        for one in self._all:
            try:
                nearest = min(nearest, self._look_at(one, now))
                one.is_broken = False
            except Exception as error:
                self._writer.broke(one, error)
                nearest = min(nearest, now + AFTER_ERROR)
        return nearest - now

    def _look_at(self, one: SessionProgress[Any], now: float) -> float:
        """Start what is due of a partition; return when to look again."""
        progress, limit = one.progress, self._write_timeout + GRACE
        due = None
        with one.guard:
            if one.is_over:
                return math.inf
            if is_late := now >= progress.late_at(limit):
                progress.was_late()
            if now >= progress.wake_time or one.finished.count >= progress.wake_count:
                due = progress.due(one.finished.count, one.finished.position, now)
            next_look = min(progress.wake_time, progress.late_at(limit))
        if is_late:
            self._writer.report(one.partition_id, TimeoutError(f"no answer within {limit:g} s"))
        if due is not None:
            self._start(one, due)
        return next_look

    def _start(self, one: SessionProgress[Any], due: Due) -> None:
        try:
            self._background.begin(self._writer.write, one, due, self._write_timeout)
        except RuntimeError as error:  # no thread can be started
            self._writer.was_not_begun(one, error)

    def flush(self, one: SessionProgress[Any], seconds: float) -> bool:
        """Write everything finished of a partition; return whether it is saved.

        Args:
            one: the partition.
            seconds: maximum duration; a failed write is retried, unless that would not help. A
                write that hangs is not waited for any longer.
        """
        end = time.monotonic() + seconds
        shortest = min(SHORTEST_WRITE, seconds / 2)
        # Otherwise a caller that keeps finishing events would keep this from ending.
        goal = one.finished.count
        while one.progress.saved_count < goal and not one.is_over:
            if (left := end - time.monotonic()) < shortest:
                return False
            self._write_rest(one, left)
            one.until(lambda: one.is_over or not one.progress.is_writing, left)
            if one.progress.is_refused_for_good:
                return False
            pause = one.progress.retry_at - time.monotonic()
            if one.progress.saved_count < goal and pause > 0:
                one.until(lambda: one.is_over, min(pause, end - time.monotonic()))
        return bool(one.progress.saved_count >= goal)

    def flush_all(self, several: Sequence[SessionProgress[Any]], seconds: float) -> bool:
        """Write everything finished of several partitions at once; return whether it is saved."""
        end, is_saved = time.monotonic() + seconds, True
        self.begin_flush(several, seconds)
        for one in several:
            is_saved = self.flush(one, end - time.monotonic()) and is_saved
        return is_saved

    def begin_flush(self, several: Sequence[SessionProgress[Any]], seconds: float) -> None:
        """Start to write what is finished of several partitions, without waiting."""
        for one in several:
            self._write_rest(one, seconds)

    def _write_rest(self, one: SessionProgress[Any], seconds: float) -> None:
        """Write what is finished in the background: a hanging store must not block the caller."""
        if seconds <= 0:
            return
        with one.guard:
            due = one.progress.rest(one.finished.count, one.finished.position, time.monotonic())
        if due is None:
            return
        seconds = min(self._write_timeout, seconds)
        try:
            self._background.begin(self._writer.write, one, due, seconds)
        except RuntimeError:  # no thread can be started during interpreter shutdown
            self._writer.write(one, due, seconds)
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
