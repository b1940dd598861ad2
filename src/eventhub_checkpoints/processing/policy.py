"""Policies that decide when positions are saved.

A `Policy` is an immutable value. Each session of a partition gets its own `SaveSchedule` from it,
which decides when the next save is due. The current time is a parameter.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.configuration_tables import (
    Keys,
    checked_table,
    count,
    duration,
    unfit,
)
from eventhub_checkpoints._shared.settings import (
    LONGEST_TIME,
    SHORTEST_TIME,
    is_count,
    is_number,
    require,
)
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.processing.watermark import Position


@dataclass(frozen=True, slots=True)
class Due:
    """Position to save; it stands for the first `count` finished events."""

    count: int
    position: Position


class SaveSchedule(ABC):
    """Decides when a position of one partition is saved, and which one, during one session.

    Counts are events finished in order since the session began: the length of the finished prefix.
    After `look`, both bounds lie ahead. Once a position is due, they count from that position, so
    that events that finish while it is written do not cause a call.

    Attributes:
        wake_count: number of finished events at which a position may become due.
        wake_time: time at which a position may become due, even if `wake_count` has not been
            reached; infinity if none becomes due by time alone.

    Units: `wake_time` and every `now` are seconds of one monotonic clock.
    """

    wake_count: int
    wake_time: float

    @abstractmethod
    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        """Return what should be saved now; called at each of the two bounds, or more often.

        Args:
            count: number of finished events.
            position: of the newest of them; None before the first.
            now: current time.

        Returns:
            The due position, or None; the same one again until `saved` is called.
        """

    @abstractmethod
    def saved(self, count: int, now: float) -> None:
        """Record that the first `count` events are saved; `look` is called next."""


class EverySchedule(SaveSchedule):
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


class JointSchedule(SaveSchedule):
    """Combines several schedules by choosing among the positions that are due."""

    def __init__(
        self,
        schedules: Sequence[SaveSchedule],
        choose: Callable[[Sequence[Due | None]], Due | None],
    ) -> None:
        self._schedules, self._choose = schedules, choose
        self._set_bounds()

    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        due = self._choose([each.look(count, position, now) for each in self._schedules])
        self._set_bounds()
        return due

    def saved(self, count: int, now: float) -> None:
        for schedule in self._schedules:
            schedule.saved(count, now)

    def _set_bounds(self) -> None:
        self.wake_count = min(each.wake_count for each in self._schedules)
        self.wake_time = min(each.wake_time for each in self._schedules)


def newest(due: Sequence[Due | None]) -> Due | None:
    """Return the newest of the positions that are due."""
    return max((each for each in due if each), key=lambda each: each.count, default=None)


def oldest(due: Sequence[Due | None]) -> Due | None:
    """Return the oldest of the due positions if every schedule has one."""
    ready = [each for each in due if each]
    return min(ready, key=lambda each: each.count) if len(ready) == len(due) else None


PARTS = 64
"""Groups into which either bound is divided."""
MOST_GROUPS = 2 * PARTS + 2


@dataclass(slots=True, eq=False, repr=False)
class EventGroup:
    """Consecutive events that are saved together.

    Attributes:
        due_at: time by which the first of them has to be saved.
        count: number of finished events once the last of them is finished.
        position: of the last of them.
    """

    due_at: float
    count: int
    position: Position


class TrailingSchedule(SaveSchedule):
    """Keeps at most `events` events unsaved, and none that was finished over `seconds` ago.

    Both hold at any event rate while writes take no time. A save leaves as much unsaved as it may:
    half of `events`, and what was finished in the last `seconds - check_every`.

    Units: events; seconds.
    """

    def __init__(self, events: int, seconds: float, check_every: float, now: float) -> None:
        self._events, self._seconds, self._interval = events, seconds, check_every
        self._group_events = math.ceil(events / PARTS)
        self._group_seconds = seconds / PARTS
        self._began = now
        self._known = self._saved = 0
        self._unsaved: deque[EventGroup] = deque()
        # The newest group: the time when it began, the number of events before it, and whether it
        # is empty, and so begins only with its first event.
        self._first, self._start, self._is_waiting = now, 0, True
        self._set_bounds(now)

    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        has_moved = count > self._known
        if position is not None and has_moved:
            self._learn(count, position, now)
        due = self._due(now)
        takes_all = due is not None and due.count == self._known
        if takes_all or self._is_full(now):
            self._begin_group(now, has_moved)
        self._set_bounds(now)
        return due

    def saved(self, count: int, now: float) -> None:
        self._saved = max(self._saved, count)
        self._known = max(self._known, count)
        while self._unsaved and self._unsaved[0].count <= count:
            self._unsaved.popleft()

    def _learn(self, count: int, position: Position, now: float) -> None:
        """Add the events that were finished since the last check to the newest group."""
        if self._is_waiting:
            self._first, self._start, self._is_waiting = now, self._known, False
        self._known = count
        groups = self._unsaved
        if groups and groups[-1].count > self._start:
            groups[-1].count, groups[-1].position = count, position
            return
        groups.append(EventGroup(self._due_at(self._first), count, position))
        if len(groups) > MOST_GROUPS:
            # Only while what is due cannot be saved; the next oldest is then due as well.
            groups.popleft()

    def _is_full(self, now: float) -> bool:
        """Return whether the newest group takes no more events."""
        is_over = now >= self._first + self._group_seconds
        return is_over or self._known >= self._start + self._group_events

    def _begin_group(self, now: float, has_moved: bool) -> None:
        """Begin a group with the following events; if none has finished, with the next event.

        The event flow has stopped in that case, and the next event must not be taken for older than
        it is.
        """
        self._is_waiting = not has_moved or self._group_events == 1
        self._first, self._start = now, self._known

    def _due_at(self, finished_at: float) -> float:
        """Return the first check at which an event has the maximum age that a check may leave."""
        age = finished_at + self._seconds - self._interval - self._began
        check = self._began + math.ceil(age / self._interval) * self._interval
        return min(check, finished_at + self._seconds)  # float rounding may put `check` after it

    def _due(self, now: float) -> Due | None:
        """Return the newest position that either bound makes due."""
        through = 0
        if self._known - self._saved >= self._events:
            through = self._known - self._events // 2
        last: EventGroup | None = None
        for group in self._unsaved:
            if group.due_at > now and (last.count if last else 0) >= through:
                break
            last = group
        return Due(last.count, last.position) if last else None

    def _set_bounds(self, now: float) -> None:
        if self._is_waiting:
            self.wake_count, self.wake_time = self._known + 1, math.inf
        else:
            self.wake_count = self._start + self._group_events
            self.wake_time = self._first + self._group_seconds
        if self._saved + self._events > self._known:
            self.wake_count = min(self.wake_count, self._saved + self._events)
        if self._unsaved and self._unsaved[0].due_at > now:
            self.wake_time = min(self.wake_time, self._unsaved[0].due_at)


UNREACHED = sys.maxsize
"""More events than any session reaches."""
IOTHUB_REACT: Keys = {
    "frequency": duration(1, 60),
    "countThreshold": count,
    "timeThreshold": duration(1, 3600),
}
DEFAULTS: Mapping[str, Any] = {"frequency": 15.0, "countThreshold": 2000, "timeThreshold": 300.0}
"""Source: toketi-iothubreact 0.9, `src/main/resources/reference.conf`."""


class Policy(ABC):
    """Decides when the positions of partitions are saved; one policy serves any number of them."""

    @abstractmethod
    def begin(self, now: float) -> SaveSchedule:
        """Return the schedule for one session of a partition that begins now."""

    @staticmethod
    def from_settings(settings: Mapping[str, Any]) -> "Policy":
        """Return the replay window that settings of iothub-react configure.

        Args:
            settings: `frequency` (from 1s to 60s, by default 15s): how often the age of events is
                checked; `countThreshold` (2000) and `timeThreshold` (from 1s to 1 hour, 5 minutes):
                how many events, and from what time, a restart repeats.

        Raises:
            ConfigurationError: a key is unknown, or a value is invalid.

        Source: toketi-iothubreact 0.9, `config/CPConfiguration.scala`, which silently replaces
        invalid values with defaults.
        """
        if not isinstance(settings, Mapping):
            raise unfit("the table of settings", settings, f"one with {', '.join(IOTHUB_REACT)}")
        values = checked_table("", settings, IOTHUB_REACT)
        frequency, events, seconds = ({**DEFAULTS, **values}[name] for name in IOTHUB_REACT)
        if frequency > seconds:
            default = "" if "frequency" in values else ", its default"
            raise ConfigurationError(
                f"frequency is {frequency:g}s{default}; "
                f"expected at most timeThreshold, which is {seconds:g}s"
            )
        return trailing(events=events, seconds=seconds, check_every=frequency)


@with_checked_arguments
def every(*, events: int | None = None, seconds: float | None = None) -> Policy:
    """Save the newest position after this many events or seconds, whichever comes first.

    Both count from the last save. With `seconds`, the first event after a longer idle time is
    saved at once. At least one of the two is required.

    Units: seconds, from 0.001.

    Raises:
        ConfigurationError: neither is set, or one is invalid.
    """
    if events is None and seconds is None:
        raise ConfigurationError("every() needs events=, seconds= or both")
    if events is not None:
        require_events(events)
    if seconds is not None:
        require_interval("seconds", seconds)
    return Every(events, seconds)


@with_checked_arguments
def trailing(*, events: int, seconds: float, check_every: float | None = None) -> Policy:
    """Save a position that trails on purpose, so that a restart repeats the newest events.

    While writes take no time, at any event rate, at most `events` finished events are unsaved, and
    none that was finished more than `seconds` ago. Saves are rarer than events: a save due by count
    leaves half of `events` unsaved, and time is checked every `check_every` seconds.

    Args:
        check_every: at most `seconds`. What was finished in the last `seconds - check_every`
            stays unsaved, so an interval as long as `seconds` repeats little. By default half
            of `seconds`.

    Units: seconds, from 0.001.

    Raises:
        ConfigurationError: a value is invalid.
    """
    require_events(events)
    require_interval("seconds", seconds)
    if check_every is None:
        return Trailing(events, seconds, max(seconds / 2, SHORTEST_TIME))
    require_interval("check_every", check_every)
    require(
        "check_every", check_every, check_every <= seconds, f"at most seconds, which is {seconds!r}"
    )
    return Trailing(events, seconds, check_every)


def any_of(*policies: Policy) -> Policy:
    """Save when any policy is due; save the newest due position.

    Raises:
        ConfigurationError: there is no policy, or an argument is not one.
    """
    return AnyOf(checked_policies("any_of", policies))


def all_of(*policies: Policy) -> Policy:
    """Save when all policies are due; save the oldest due position.

    Raises:
        ConfigurationError: there is no policy, or an argument is not one.
    """
    return AllOf(checked_policies("all_of", policies))


def require_events(events: object) -> None:
    """Refuse a value that is not a number of events."""
    require("events", events, is_count(events), "a whole number, 1 or more")


def require_interval(name: str, value: Any) -> None:
    """Refuse an interval that a schedule cannot count."""
    fits = is_number(value) and SHORTEST_TIME <= value <= LONGEST_TIME
    require(name, value, fits, f"seconds, from {SHORTEST_TIME:g} to {LONGEST_TIME:g}")


def checked_policies(name: str, policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Return the policies; refuse an empty tuple, and anything that is not a policy."""
    if not policies:
        raise ConfigurationError(f"{name}() needs one policy or more")
    for policy in policies:
        require(f"a policy of {name}", policy, isinstance(policy, Policy), "every(...) or the like")
    return policies


def spelled(name: str, **values: float | None) -> str:
    """Return the expression that creates this policy, for messages."""
    arguments = (f"{key}={value!r}" for key, value in values.items() if value is not None)
    return f"{name}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True, repr=False)
class Every(Policy):
    """See `every`."""

    events: int | None
    seconds: float | None

    def __repr__(self) -> str:
        return spelled("every", events=self.events, seconds=self.seconds)

    def begin(self, now: float) -> SaveSchedule:
        return EverySchedule(self.events or UNREACHED, self.seconds or math.inf, now)


@dataclass(frozen=True, slots=True, repr=False)
class Trailing(Policy):
    """See `trailing`."""

    events: int
    seconds: float
    check_every: float

    def __repr__(self) -> str:
        values = {"seconds": self.seconds, "check_every": self.check_every}
        return spelled("trailing", events=self.events, **values)

    def begin(self, now: float) -> SaveSchedule:
        return TrailingSchedule(self.events, self.seconds, self.check_every, now)


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Policy):
    """See `any_of`."""

    policies: tuple[Policy, ...]

    def __repr__(self) -> str:
        return f"any_of({', '.join(map(repr, self.policies))})"

    def begin(self, now: float) -> SaveSchedule:
        return JointSchedule([policy.begin(now) for policy in self.policies], newest)


@dataclass(frozen=True, slots=True, repr=False)
class AllOf(Policy):
    """See `all_of`."""

    policies: tuple[Policy, ...]

    def __repr__(self) -> str:
        return f"all_of({', '.join(map(repr, self.policies))})"

    def begin(self, now: float) -> SaveSchedule:
        return JointSchedule([policy.begin(now) for policy in self.policies], oldest)


DEFAULT_POLICY = every(events=1000, seconds=10)
"""Policy of a program that does not set one."""
