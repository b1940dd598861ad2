"""What is saved of one partition, what is being written, and when to write again.

Rule 1: one write at a time. Rule 2: what is written is the newest of that moment, not of the one
when it became due. Rule 3: time and chance are parameters.
"""

import math

from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.processing.policy import Due, Policy
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Position


class Since:
    """When a partition began to be waited for, as long as nothing of it has changed since."""

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._count, self._at = -1, -math.inf

    def of(self, count: int, now: float) -> float:
        """Return the moment at which this count was given first; another count begins anew."""
        if count != self._count:
            self._count, self._at = count, now
        return self._at


class WriteState:
    """The saving of one partition in one claim.

    Args:
        policy: when to save.
        now: the claim's beginning. Units: seconds of a clock that does not go back.
        tally: where its writes are counted.

    Attributes:
        wake_count: `due` has nothing to say before so many events are finished ...
        wake_time: ... or before this moment.
        retry_at: before this moment a write that failed is not due again.
        saved_count: events, from the first, that the newest confirmed write stands for.
        saved_position: what that write stored; None while there was none.
        saved_at: when that was, or the claim's beginning.
        is_refused_for_good: whether the last write failed in a way that another try would not mend.
        trying_since: when the first write was begun of those since the last that ended well; None
            where there is none.
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
        """Whether a write is under way."""
        return self._writing is not None

    def due(self, count: int, position: Position | None, now: float) -> Due | None:
        """Begin the write that the policy asks for; None: nothing is to be written now.

        Args:
            count: events finished, in order, since the claim began.
            position: of the last of them.
            now: see above.
        """
        if self._writing is not None or now < self.retry_at:
            return None
        due = self._plan.look(count, position, now)
        self.wake_count, self.wake_time = self._plan.wake_count, self._plan.wake_time
        if due is None and position is not None and self.saved_count < self._asked_count:
            due = Due(count, position)
        return due and self._begin(due, now)

    def rest(self, count: int, position: Position | None, now: float) -> Due | None:
        """Begin the write of all that is finished and not saved, whatever the policy says.

        One that fails is due again, also where the policy would not say so.
        """
        self._asked_count = max(self._asked_count, count)
        if self._writing is not None or position is None or count <= self.saved_count:
            return None
        return self._begin(Due(count, position), now)

    def instead(self, due: Due, now: float) -> Due | None:
        """Begin a write that was asked for; None: another is under way.

        Args:
            due: a position of any kind, in the place of all that its count stands for.
            now: see above.
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
        """When the write that is under way should have ended, and nobody was told; or never.

        Args:
            limit: seconds that a write may take.
        """
        is_awaited = self._writing is not None and not self._is_late
        return self._began_at + limit if is_awaited else math.inf

    def was_late(self) -> None:
        """The write has not ended in time: it has failed, and no other begins before it ends."""
        self._is_late = True
        self.tally.failed += 1

    def was_saved(self, now: float) -> None:
        """The write was confirmed."""
        due = self._ended(now)
        self.tally.saved += 1
        self.saved_position, self.saved_at = due.position, now
        self._plan.saved(due.count, now)

    def was_refused(self, now: float) -> None:
        """Another writer is further; what is stored stands for these events as well."""
        due = self._ended(now)
        self.tally.refused += 1
        self._plan.saved(due.count, now)

    def was_covered(self, now: float) -> None:
        """What is stored stands for these events already; nothing was written."""
        self._plan.saved(self._ended(now).count, now)

    def was_given_up(self, now: float, *, is_refusal: bool) -> None:
        """The write that was asked for is not tried again; what it stood for is unsaved still."""
        self._writing = None
        self.tally.refused += is_refusal
        self.tally.failed += not is_refusal and not self._is_late
        if not self._failures:
            self.trying_since = None
        self._sleep_until(max(now, self.retry_at))

    def was_dropped(self) -> None:
        """The write was not begun after all, and none will be."""
        self._writing = self.trying_since = None

    def _ended(self, now: float) -> Due:
        due, self._writing = self._writing, None
        assert due is not None, "a write ended that had not begun"
        self._failures, self.retry_at, self.trying_since = 0, -math.inf, None
        self.saved_count = max(self.saved_count, due.count)
        self._sleep_until(now)
        return due

    def has_failed(self, now: float, chance: float, *, for_good: bool = False) -> None:
        """The write failed, or nobody knows; it is due again after a pause.

        Args:
            now: see above.
            chance: from 0 to 1, so that many clients do not come back in step.
            for_good: whether whoever waits for it need not wait for another try.
        """
        self._writing, self.is_refused_for_good = None, for_good
        self.tally.failed += not self._is_late
        self.retry_at = now + (pause(self._failures, math.inf, chance) or 0)
        self._failures += 1
        self._sleep_until(self.retry_at)

    def _sleep_until(self, moment: float) -> None:
        self.wake_count, self.wake_time = math.inf, moment
