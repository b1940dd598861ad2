"""What pages remember of groups beyond the samples of the monitor.

An hour of samples of 1,000 partitions would take 50 MB, so only two things are kept of it: the lag
of each group, and since when members hold partitions.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventhub_checkpoints.operations.monitor import Status
from eventhub_checkpoints.records import Scope

SPAN = 3600.0
"""Seconds for which the lag of a group is kept."""
POINTS = 240
"""Points of a curve; there are up to twice as many before every other one is dropped."""

Point = tuple[float, int | None]
"""Time in seconds since the epoch, and the lag then; None if it was unknown."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Partition that a member holds.

    Attributes:
        since: time of the first sample that shows it, in seconds since the epoch.
        is_older: whether it is the first sample of all, so that the member may have held it before.
    """

    owner_id: str
    since: float
    is_older: bool


class GroupObservations:
    """What is remembered of one group."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.holdings: Mapping[str, Holding] = {}
        self._has_sample = False

    def add(self, status: Status, now: float) -> None:
        """Add what a poll has shown."""
        newest = None if status.error else status.window[-1]
        points = [point for point in self.points if point[0] > now - SPAN]
        points.append((now, newest.lag) if newest else (now, None))
        self.points = points[::-2][::-1] if len(points) > 2 * POINTS else points
        if newest is None:
            return
        before, is_older = self.holdings, not self._has_sample
        self.holdings = {
            each.partition_id: known
            if (known := before.get(each.partition_id)) and known.owner_id == each.owner_id
            else Holding(each.owner_id, newest.time, is_older)
            for each in newest.partitions
            if each.owner_id
        }
        self._has_sample = True


class Observations:
    """What is remembered of all groups; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_group: dict[Scope, GroupObservations] = {}

    def add(self, status: Status) -> None:
        """Add what a poll has shown of a group."""
        with self._lock:
            self._of_group.setdefault(status.scope, GroupObservations()).add(status, time.time())

    def points(self, scope: Scope) -> Sequence[Point]:
        """Return the lag of a group in the last hour, oldest first."""
        with self._lock:
            known = self._of_group.get(scope)
            return known.points if known else []

    def holdings(self, scope: Scope) -> Mapping[str, Holding]:
        """Return which partitions of a group have members, and since when, by partition id."""
        with self._lock:
            known = self._of_group.get(scope)
            return known.holdings if known else {}
