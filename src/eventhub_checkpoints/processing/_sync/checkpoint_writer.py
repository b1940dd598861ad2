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
"""What tells a partition from all others."""


class Finished(Protocol):
    """What of a partition is finished: the position, and how many events it stands for."""

    @property
    def count(self) -> int: ...

    @property
    def position(self) -> Position | None: ...


F = TypeVar("F", bound=Finished)


class SessionProgress(Generic[F]):
    """One partition in one claim: what is finished of it, and what is saved.

    Args:
        names: the keys of its checkpoint besides the position.
        finished: what may be saved; read under `guard`.
        policy: when to save.
        tally: where its writes are counted.

    Attributes:
        partition_id: which partition it is.
        guard: held while `finished` or `progress` is read or changed, never while waiting.
        watchers: one for each who waits in `until`.
        before: the claim of the same partition that this one may have overlapped; its last write
            comes first, and no position below that is written.
        behind_since: when the first event was begun after all before it were saved.
        flushing: since when the last of it is being written.
        is_over: whether the claim has ended, so that nothing is written any more.
        is_broken: whether its policy raised when it was asked last.
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
        """Whether something finished is not saved."""
        return self.finished.count > self.progress.saved_count

    @property
    def pending(self) -> int:
        """Events that were begun and that the position has not passed."""
        return 0

    @property
    def unsaved(self) -> int:
        """Events that were begun and would be read again after a crash."""
        return self.finished.count + self.pending - self.progress.saved_count

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of it is written any more."""
        return self.is_over and not self.progress.is_writing

    def is_covered(self, position: Position) -> bool:
        """Whether the claim before has stored this position, or a higher one; waits for its last.

        A sync client may claim a partition anew while it closes it: it lists checkpoints in one
        thread before the last one is written in the other.
        Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `_close_consumer`.

        Raises:
            TimeoutError: the last write of the claim before does not end.
        """
        before = self.before
        if before is None:
            return False
        if not before.until(lambda: before.is_quiet, seconds_left()):
            raise TimeoutError("the claim before is still being saved")
        reached = before.progress.saved_position
        return reached is not None and position.sequence_number <= reached.sequence_number

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds, at most so long; whether it does."""
        if holds():
            return True
        end = time.monotonic() + seconds
        # One for each who waits: another would clear the signal before this one has seen it.
        signal = Signal()
        with self.guard:
            self.watchers = (*self.watchers, signal)
        try:
            while not holds():
                signal.clear()
                # It may have come to hold before the signal was cleared.
                if not holds() and not signal.wait(end - time.monotonic()):
                    return holds()
            return True
        finally:
            with self.guard:
                self.watchers = tuple(one for one in self.watchers if one is not signal)

    def changed(self) -> None:
        """Wake who waits in `until`."""
        for signal in self.watchers:
            signal.set()

    def stats(self, now: float) -> PartitionStats:
        """How it is doing.

        Args:
            now: as `time.monotonic` has it.
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
        store: where checkpoints go.
        on_error: is given the partition and what went wrong.
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
        # A store of another kind may hand on what it is given to its driver.
        self._stale = {"on_stale": "raise"} if self.goes_forward_only else {}
        self._on_error = on_error
        self._settled = settled

    def write(self, one: SessionProgress[Any], due: Due, seconds: float) -> None:
        """Write what is due of a partition, within so many seconds."""
        # A claim that is over may be another client's by now.
        if one.is_over:
            with one.guard:
                one.progress.was_dropped()
            one.changed()
            return
        # What was cut off may have been stored all the same: it is written again.
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
        """Store a position, unless the claim before has; whether it was stored."""
        if one.is_covered(position):
            return False
        self.put(one, position, **self._stale)
        return True

    def was_not_begun(self, one: SessionProgress[Any], error: Exception) -> None:
        """Note that a write could not even be begun."""
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
        """Note that a policy raised; the other partitions are looked after all the same."""
        one.is_broken = True
        log.error("the policy of partition %s raised", one.partition_id, exc_info=error)
        self._tell(one.partition_id, error)

    def put(self, one: SessionProgress[Any], position: Position, **kwargs: Any) -> None:
        """Store a position; raise what the store raises.

        Args:
            one: the partition.
            position: any.
            **kwargs: what the store is given besides.
        """
        row: dict[str, Any] = {
            **one.names,
            "offset": position.offset,
            "sequence_number": position.sequence_number,
        }
        self._store.update_checkpoint(row, **kwargs)

    def report(self, partition_id: str, error: Exception) -> None:
        """Say that a write went wrong; nobody is interrupted by it."""
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
"""Seconds without which no write is begun again."""
GRACE = 0.5
"""Seconds for a write that was cut off to end, before it counts as hanging."""
AFTER_ERROR = 1.0
"""Seconds until a policy that raised is asked again."""


class CheckpointWriter:
    """Writes what is due of many partitions, and never raises.

    Args:
        store: where checkpoints go.
        write_timeout: seconds that one write may take.
        on_error: is given the partition and what went wrong.
        unhealthy_after: seconds for which a partition's writes may fail.
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
        """Whether the store refuses to go back."""
        return self._writer.goes_forward_only

    def start(self) -> None:
        """Look after its partitions in this process and event loop, if there are any."""
        with self._changing:
            if self._all:
                self._background.start()

    def add(self, one: SessionProgress[Any]) -> None:
        """Look after a partition."""
        with self._changing:
            # In this order: with a partition and nobody who looks it would not be healthy.
            self._background.start()
            self._all = self._all | {one}
        self._background.wake()

    def end(self, one: SessionProgress[Any]) -> None:
        """Begin no more writes of a partition."""
        with one.guard:
            one.is_over = True
        with self._changing:
            self._all = self._all - {one}
        one.changed()

    def finish(self, one: SessionProgress[Any], seconds: float, *, flushes: bool) -> None:
        """End a claim: when this returns, nothing of it is being written, if the store answers.

        Args:
            one: the partition in that claim.
            seconds: within which it has to be done.
            flushes: whether all that is finished is written first.
        """
        end = time.monotonic() + seconds
        try:
            if flushes and not self.flush(one, seconds):
                log.warning(
                    "partition %s: the last is not saved; it is read again", one.partition_id
                )
        finally:
            self.end(one)
            # The partition is released next, and a write that lands after that is another's loss.
            one.until(lambda: not one.progress.is_writing, end - time.monotonic())

    def wake(self) -> None:
        """Look at once whether something is due."""
        self._background.wake()

    def is_healthy(self) -> bool:
        """Whether checkpoints are being written."""
        now, everything = time.monotonic(), self._all
        since = [one.progress.trying_since for one in everything]
        too_long = any(one is not None and now - one > self._unhealthy_after for one in since)
        if too_long or any(one.is_broken for one in everything):
            return False
        return self._background.is_alive or not everything

    def stats(self) -> list[tuple[Mapping[str, str], PartitionStats]]:
        """How each partition is doing, after its names."""
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
        """Start what is due of a partition; when to look again."""
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
        except RuntimeError as error:  # there is no thread to be had
            self._writer.was_not_begun(one, error)

    def flush(self, one: SessionProgress[Any], seconds: float) -> bool:
        """Write all that is finished of a partition; whether it is saved.

        Args:
            one: the partition.
            seconds: within which it has to be done; a write that failed is tried again, unless
                that would not help. One that hangs is waited for no longer.
        """
        end = time.monotonic() + seconds
        shortest = min(SHORTEST_WRITE, seconds / 2)
        # Who finishes events all the while must not keep this from ending.
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
        """Write all that is finished of several partitions, side by side; whether all is saved."""
        end, is_saved = time.monotonic() + seconds, True
        self.begin_flush(several, seconds)
        for one in several:
            is_saved = self.flush(one, end - time.monotonic()) and is_saved
        return is_saved

    def begin_flush(self, several: Sequence[SessionProgress[Any]], seconds: float) -> None:
        """Begin to write what is finished of several partitions, and wait for none."""
        for one in several:
            self._write_rest(one, seconds)

    def _write_rest(self, one: SessionProgress[Any], seconds: float) -> None:
        """Have what is finished written beside the caller: a store that hangs must not hold it."""
        if seconds <= 0:
            return
        with one.guard:
            due = one.progress.rest(one.finished.count, one.finished.position, time.monotonic())
        if due is None:
            return
        seconds = min(self._write_timeout, seconds)
        try:
            self._background.begin(self._writer.write, one, due, seconds)
        except RuntimeError:  # at the interpreter's end no thread can be started
            self._writer.write(one, due, seconds)
        self._background.wake()

    def begin(self, function: Callable[..., None], *args: object) -> None:
        """Call a function that does not raise beside the caller; `close` waits for it.

        Raises:
            RuntimeError: no thread can be started.
        """
        self._background.start()
        self._background.begin(function, *args)

    def close(self, seconds: float) -> None:
        """End what was started."""
        self._background.stop(seconds)
