"""State of the checkpoint writes of one partition: last save, current write and next attempt.

Rule 1: one write at a time. Rule 2: a write takes the newest position at the moment it starts, not
at the moment it became due. Rule 3: time and randomness are parameters.
"""

import math

from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Position


class Since:
    """Time since which a partition has been waited for without any progress."""

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._count, self._at = -1, -math.inf

    def of(self, count: int, now: float) -> float:
        """Return when this count was first passed; a different count restarts the time."""
        if count != self._count:
            self._count, self._at = count, now
        return self._at


class WriteState:
    """Write state of one partition in one session.

    Args:
        policy: when to save.
        now: start of the session. Units: seconds of a monotonic clock.
        tally: counts the writes.

    Attributes:
        wake_count: `due` returns None before this many events are finished ...
        wake_time: ... or before this time.
        retry_at: a failed write is not due again before this time.
        saved_count: events, from the first, that the newest confirmed write stands for.
        saved_position: position that this write stored; None if there was none.
        saved_at: time of that write, or the start of the session.
        is_refused_for_good: whether the last write failed in a way that a retry would not fix.
        trying_since: start of the first write since the last successful one; None if there is
            none.
    """

    def __init__(self, policy: Policy, now: float, tally: Tally) -> None:
        self._plan = policy.begin(now)
        self._writing: Due | None = None
        self._began_at = now
        self._is_late = False
        self._failures = 0
        self._asked_count = 0
        self.retry_at = -math.inf
        self.wake_count: float = self._plan.wake_count
        self.wake_time = self._plan.wake_time
        self.saved_count = 0
        self.saved_position: Position | None = None
        self.saved_at = now
        self.tally = tally
        self.is_refused_for_good = False
        self.trying_since: float | None = None

    @property
    def is_writing(self) -> bool:
        """Return whether a write is in progress."""
        return self._writing is not None

    def due(self, count: int, position: Position | None, now: float) -> Due | None:
        """Start the write that the policy asks for; None: nothing is to be written now.

        Args:
            count: events finished, in order, since the session began.
            position: of the last of them.
            now: see the class.
        """
        if self._writing is not None or now < self.retry_at:
            return None
        due = self._plan.look(count, position, now)
        self.wake_count, self.wake_time = self._plan.wake_count, self._plan.wake_time
        if due is None and position is not None and self.saved_count < self._asked_count:
            due = Due(count, position)
        return due and self._begin(due, now)

    def rest(self, count: int, position: Position | None, now: float) -> Due | None:
        """Start a write of all that is finished and not saved, regardless of the policy.

        If it fails it is due again, even if the policy would not ask for it.
        """
        self._asked_count = max(self._asked_count, count)
        if self._writing is not None or position is None or count <= self.saved_count:
            return None
        return self._begin(Due(count, position), now)

    def instead(self, due: Due, now: float) -> Due | None:
        """Start a write that was requested; None: another is in progress.

        Args:
            due: any position, stored in place of all that its count stands for.
            now: see the class.
        """
        return None if self._writing is not None else self._begin(due, now)

    def _begin(self, due: Due, now: float) -> Due:
        self._writing, self._began_at, self._is_late = due, now, False
        self.is_refused_for_good = False
        if self.trying_since is None:
            self.trying_since = now
        self._sleep_until(math.inf)
        return due

    def late_at(self, limit: float) -> float:
        """Return when the current write times out; infinity if there is none or it has already.

        Args:
            limit: seconds that a write may take.
        """
        is_awaited = self._writing is not None and not self._is_late
        return self._began_at + limit if is_awaited else math.inf

    def was_late(self) -> None:
        """Count the current write as failed: it timed out, and the next one waits for its end."""
        self._is_late = True
        self.tally.failed += 1

    def was_saved(self, now: float) -> None:
        """Record that the write was confirmed."""
        due = self._ended(now)
        self.tally.saved += 1
        self.saved_position, self.saved_at = due.position, now
        self._plan.saved(due.count, now)

    def was_refused(self, now: float) -> None:
        """Record that another writer is ahead: its checkpoint stands for these events as well."""
        due = self._ended(now)
        self.tally.refused += 1
        self._plan.saved(due.count, now)

    def was_covered(self, now: float) -> None:
        """Record that nothing was written, because the stored position stands for these events."""
        self._plan.saved(self._ended(now).count, now)

    def was_given_up(self, now: float, *, is_refusal: bool) -> None:
        """Record that a requested write is not retried; what it stood for remains unsaved."""
        self._writing = None
        self.tally.refused += is_refusal
        self.tally.failed += not is_refusal and not self._is_late
        if not self._failures:
            self.trying_since = None
        self._sleep_until(max(now, self.retry_at))

    def was_dropped(self) -> None:
        """Record that the write was not started after all, and that none will be."""
        self._writing = self.trying_since = None

    def _ended(self, now: float) -> Due:
        due, self._writing = self._writing, None
        assert due is not None, "a write ended that had not begun"
        self._failures, self.retry_at, self.trying_since = 0, -math.inf, None
        self.saved_count = max(self.saved_count, due.count)
        self._sleep_until(now)
        return due

    def has_failed(self, now: float, chance: float, *, for_good: bool = False) -> None:
        """Record that the write failed or its outcome is unknown; it is due again after a pause.

        Args:
            now: see the class.
            chance: from 0 to 1, so that many clients do not retry in step.
            for_good: whether callers that wait for it need not wait for a retry.
        """
        self._writing, self.is_refused_for_good = None, for_good
        self.tally.failed += not self._is_late
        self.retry_at = now + (pause(self._failures, math.inf, chance) or 0)
        self._failures += 1
        self._sleep_until(self.retry_at)

    def _sleep_until(self, moment: float) -> None:
        self.wake_count, self.wake_time = math.inf, moment
