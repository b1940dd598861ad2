"""One partition in one claim: what is finished of it, and what is saved."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from eventhub_checkpoints._shared._async.background import Signal
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.processing.statistics import PartitionStats, Tally
from eventhub_checkpoints.processing.watermark import Position
from eventhub_checkpoints.processing.write_state import Progress, Since

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")
"""What tells a partition from all others."""


class Finished(Protocol):
    """What of a partition is finished: the position, and how many events it stands for."""

    @property
    def count(self) -> int: ...

    @property
    def position(self) -> Position | None: ...


F = TypeVar("F", bound=Finished)


class Saved(Generic[F]):
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
        self.progress = Progress(policy, time.monotonic(), tally)
        self.guard = threading.Lock()
        self.watchers: tuple[Signal, ...] = ()
        self.before: Saved[F] | None = None
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

    async def is_covered(self, position: Position) -> bool:
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
        if not await before.until(lambda: before.is_quiet, seconds_left()):
            raise TimeoutError("the claim before is still being saved")
        reached = before.progress.saved_position
        return reached is not None and position.sequence_number <= reached.sequence_number

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
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
                if not holds() and not await signal.wait(end - time.monotonic()):
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
