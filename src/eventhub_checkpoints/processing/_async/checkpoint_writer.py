"""Checkpoints written beside the caller: when they are due, one at a time per partition."""

import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared._async.background import Background
from eventhub_checkpoints._shared.settings import is_seconds, require
from eventhub_checkpoints.processing import metrics as _metrics
from eventhub_checkpoints.processing._async.saved_position import Saved
from eventhub_checkpoints.processing._async.write import OnError, Writer
from eventhub_checkpoints.processing.policy import Due
from eventhub_checkpoints.processing.statistics import PartitionStats

log = logging.getLogger("eventhub_checkpoints")

SHORTEST_WRITE = 0.05
"""Seconds without which no write is begun again."""
GRACE = 0.5
"""Seconds for a write that was cut off to end, before it counts as hanging."""
AFTER_ERROR = 1.0
"""Seconds until a policy that raised is asked again."""


class Saver:
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
        self._writer = Writer(store, on_error, self.wake)
        self._write_timeout = write_timeout
        self._unhealthy_after = unhealthy_after
        self._background = Background(self._look)
        self._changing = threading.Lock()
        self._all: frozenset[Saved[Any]] = frozenset()
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

    def add(self, one: Saved[Any]) -> None:
        """Look after a partition."""
        with self._changing:
            # In this order: with a partition and nobody who looks it would not be healthy.
            self._background.start()
            self._all = self._all | {one}
        self._background.wake()

    def end(self, one: Saved[Any]) -> None:
        """Begin no more writes of a partition."""
        with one.guard:
            one.is_over = True
        with self._changing:
            self._all = self._all - {one}
        one.changed()

    async def finish(self, one: Saved[Any], seconds: float, *, flushes: bool) -> None:
        """End a claim: when this returns, nothing of it is being written, if the store answers.

        Args:
            one: the partition in that claim.
            seconds: within which it has to be done.
            flushes: whether all that is finished is written first.
        """
        end = time.monotonic() + seconds
        try:
            if flushes and not await self.flush(one, seconds):
                log.warning(
                    "partition %s: the last is not saved; it is read again", one.partition_id
                )
        finally:
            self.end(one)
            # The partition is released next, and a write that lands after that is another's loss.
            await one.until(lambda: not one.progress.is_writing, end - time.monotonic())

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

    def _look_at(self, one: Saved[Any], now: float) -> float:
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

    def _start(self, one: Saved[Any], due: Due) -> None:
        try:
            self._background.begin(self._writer.write, one, due, self._write_timeout)
        except RuntimeError as error:  # there is no thread to be had
            self._writer.was_not_begun(one, error)

    async def flush(self, one: Saved[Any], seconds: float) -> bool:
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
            await self._write_rest(one, left)
            await one.until(lambda: one.is_over or not one.progress.is_writing, left)
            if one.progress.is_refused_for_good:
                return False
            pause = one.progress.retry_at - time.monotonic()
            if one.progress.saved_count < goal and pause > 0:
                await one.until(lambda: one.is_over, min(pause, end - time.monotonic()))
        return bool(one.progress.saved_count >= goal)

    async def flush_all(self, several: Sequence[Saved[Any]], seconds: float) -> bool:
        """Write all that is finished of several partitions, side by side; whether all is saved."""
        end, is_saved = time.monotonic() + seconds, True
        await self.begin_flush(several, seconds)
        for one in several:
            is_saved = await self.flush(one, end - time.monotonic()) and is_saved
        return is_saved

    async def begin_flush(self, several: Sequence[Saved[Any]], seconds: float) -> None:
        """Begin to write what is finished of several partitions, and wait for none."""
        for one in several:
            await self._write_rest(one, seconds)

    async def _write_rest(self, one: Saved[Any], seconds: float) -> None:
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
            await self._writer.write(one, due, seconds)
        self._background.wake()

    def begin(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Call a function that does not raise beside the caller; `close` waits for it.

        Raises:
            RuntimeError: no thread can be started.
        """
        self._background.start()
        self._background.begin(function, *args)

    async def close(self, seconds: float) -> None:
        """End what was started."""
        await self._background.stop(seconds)
