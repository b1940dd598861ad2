"""A replay window: the saved position trails behind on purpose, and never by too much.

Rule 1: events are remembered in groups, each as old as its first event, so that memory is bounded
at any rate and rounding saves more than was asked for, never less. Rule 2: a group is measured in
events and in seconds, for either bound needs groups that are small beside it.

Source: toketi-iothubreact 0.9, `checkpointing/CheckpointService.scala`, which keeps one group a
second: once a second holds `countThreshold` events, it saves all of them and nothing trails.
"""

import math
from collections import deque
from dataclasses import dataclass

from eventhub_checkpoints.processing.plan import Due, Plan
from eventhub_checkpoints.processing.watermark import Position

PARTS = 64
"""Groups that either bound is cut into."""
MOST_GROUPS = 2 * PARTS + 2


@dataclass(slots=True)
class Group:
    """Neighbouring events that are saved together.

    Attributes:
        due_at: the moment when the first of them has to be saved.
        count: events that are finished when the last of them is.
        position: of the last of them.
    """

    due_at: float
    count: int
    position: Position


class TrailingPlan(Plan):
    """Keeps at most `events` events unsaved, and none that was finished over `seconds` ago.

    Both hold at any rate while writes take no time. A save leaves as much unsaved as it may:
    half of `events`, and what was finished in the last `seconds - check_every`.

    Units: events; seconds.
    """

    def __init__(self, events: int, seconds: float, check_every: float, now: float) -> None:
        self._events, self._seconds, self._interval = events, seconds, check_every
        self._group_events = math.ceil(events / PARTS)
        self._group_seconds = seconds / PARTS
        self._began = now
        self._known = self._saved = 0
        self._unsaved: deque[Group] = deque()
        # The newest group: when it began, behind which event, and whether only its first
        # event will begin it.
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
        """Put what was finished since the last look into the newest group."""
        if self._is_waiting:
            self._first, self._start, self._is_waiting = now, self._known, False
        self._known = count
        groups = self._unsaved
        if groups and groups[-1].count > self._start:
            groups[-1].count, groups[-1].position = count, position
            return
        groups.append(Group(self._due_at(self._first), count, position))
        if len(groups) > MOST_GROUPS:
            # Only while what is due cannot be saved; the next oldest is then due as well.
            groups.popleft()

    def _is_full(self, now: float) -> bool:
        """Whether the newest group takes no more events."""
        is_over = now >= self._first + self._group_seconds
        return is_over or self._known >= self._start + self._group_events

    def _begin_group(self, now: float, has_moved: bool) -> None:
        """Begin a group with what follows; where nothing has moved, with the next event.

        The flow has stopped then, and the next event should not be taken to be older than it is.
        """
        self._is_waiting = not has_moved or self._group_events == 1
        self._first, self._start = now, self._known

    def _due_at(self, finished_at: float) -> float:
        """The first check at which an event is as old as a check may leave behind."""
        age = finished_at + self._seconds - self._interval - self._began
        check = self._began + math.ceil(age / self._interval) * self._interval
        return min(check, finished_at + self._seconds)  # a float may be past the check it is on

    def _due(self, now: float) -> Due | None:
        """The newest position that either rule asks for."""
        through = 0
        if self._known - self._saved >= self._events:
            through = self._known - self._events // 2
        found: Group | None = None
        for group in self._unsaved:
            if group.due_at > now and (found.count if found else 0) >= through:
                break
            found = group
        return Due(found.count, found.position) if found else None

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
