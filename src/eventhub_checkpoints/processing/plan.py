"""When to save the position of one partition, and which: what every plan can be asked.

Rule 1: time is a parameter. Rule 2: a plan is told of progress and of saves, and does neither.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eventhub_checkpoints.processing.watermark import Position


@dataclass(frozen=True, slots=True)
class Due:
    """A position to save; it stands for the first `count` finished events."""

    count: int
    position: Position


class Plan(ABC):
    """Decides when and what to save of one partition, during one claim of it.

    Counts are events finished in order since the claim began: the length of the finished prefix.
    After `look` both bounds lie ahead. While something is due they say when a newer position
    may be, so that an event finished during a write costs nothing; that it is due stays so.

    Attributes:
        wake_count: nothing can become due before so many events are finished ...
        wake_time: ... or before this moment; infinite where time alone makes nothing due.

    Units: `wake_time` and every `now` are seconds of one monotonic clock.
    """

    wake_count: int
    wake_time: float

    @abstractmethod
    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        """Say what should be saved now; asked at each of the two bounds, or more often.

        Args:
            count: how many events are finished.
            position: of the newest of them; None before the first.
            now: the moment.

        Returns:
            What is due, until it was saved, though the position may move on; or None.
        """

    @abstractmethod
    def saved(self, count: int, now: float) -> None:
        """The first `count` events are saved; `look` follows."""


class EveryPlan(Plan):
    """Counts events and seconds since the last save."""

    def __init__(self, events: int, seconds: float, now: float) -> None:
        self._events, self._seconds = events, seconds
        self._saved, self._deadline = 0, now + seconds
        self.wake_count, self.wake_time = events, self._deadline

    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        has_time = now < self._deadline
        self.wake_time = self._deadline if has_time else math.inf
        if position is None or count <= self._saved:
            self.wake_count = self._saved + self._events if has_time else count + 1
            return None
        if has_time and count - self._saved < self._events:
            self.wake_count = self._saved + self._events
            return None
        self.wake_count, self.wake_time = count + self._events, math.inf
        return Due(count, position)

    def saved(self, count: int, now: float) -> None:
        self._saved, self._deadline = max(self._saved, count), now + self._seconds


class JointPlan(Plan):
    """Several plans of one partition, and which of the positions that they ask for counts."""

    def __init__(
        self, plans: Sequence[Plan], choose: Callable[[Sequence[Due | None]], Due | None]
    ) -> None:
        self._plans, self._choose = plans, choose
        self._set_bounds()

    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        due = self._choose([plan.look(count, position, now) for plan in self._plans])
        self._set_bounds()
        return due

    def saved(self, count: int, now: float) -> None:
        for plan in self._plans:
            plan.saved(count, now)

    def _set_bounds(self) -> None:
        self.wake_count = min(plan.wake_count for plan in self._plans)
        self.wake_time = min(plan.wake_time for plan in self._plans)


def newest(asked: Sequence[Due | None]) -> Due | None:
    """What the furthest plan asks for."""
    return max((due for due in asked if due), key=lambda due: due.count, default=None)


def oldest(asked: Sequence[Due | None]) -> Due | None:
    """What the plan that trails most asks for, if every one asks."""
    due = [one for one in asked if one]
    return min(due, key=lambda due: due.count) if len(due) == len(asked) else None
