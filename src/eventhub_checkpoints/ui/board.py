"""What the pages show of a group: its partitions with their states and trends."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.monitor import Monitor, Status
from eventhub_checkpoints.operations.states import State
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.trend import Trend, trend

SAMPLES = 60
"""Samples that a sparkline shows."""


class Order(StrEnum):
    """Order of the partitions of a group."""

    NUMBER = "number"
    LAG = "lag"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Lane:
    """Partition of a group."""

    position: PartitionLag
    state: State
    trend: Trend


@dataclass(frozen=True, slots=True)
class Board:
    """Group as the pages show it.

    Attributes:
        sample: the latest sample; None before the first poll.
        error: why the lag is unknown now; `""` if it is known.
        state: the worst of its partitions; UNKNOWN if the lag is unknown now.
        members: number of live members that own a partition.
        trend: lag of all partitions.
        lanes: the partitions in numeric order.
    """

    scope: Scope
    sample: GroupLag | None
    error: str
    state: State
    members: int
    trend: Trend
    lanes: Sequence[Lane]

    def arranged(self, order: Order, *, attention: bool = False) -> list[Lane]:
        """Return the lanes in an order.

        Args:
            order: an unknown lag counts as the highest.
            attention: leave out those whose state is as expected.
        """
        lanes = [lane for lane in self.lanes if not attention or lane.state.severity]
        if order is Order.LAG:
            lanes.sort(key=lambda lane: (lane.position.lag is not None, -(lane.position.lag or 0)))
        elif order is Order.STATE:
            lanes.sort(key=lambda lane: -lane.state.rank)
        return lanes


def board(status: Status) -> Board:
    """Return what the pages show of a group."""
    window = status.window[-SAMPLES:]
    lags: dict[str, list[int | None]] = {}
    for number, sample in enumerate(window):
        for position in sample.partitions:
            # A partition that was added later is unknown in the samples before.
            each = lags.setdefault(position.partition_id, [None] * number)
            each.append(position.lag)
    newest = window[-1] if window else None
    positions = newest.partitions if newest else ()
    states = status.states
    return Board(
        status.scope,
        newest,
        status.error,
        status.state,
        newest.members if newest else 0,
        trend([sample.lag for sample in window], SAMPLES),
        [
            Lane(
                position,
                states[position.partition_id],
                trend(lags[position.partition_id], SAMPLES),
            )
            for position in positions
        ],
    )


class Boards:
    """Boards of the groups that a monitor polls, computed once for each poll."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._lock = threading.Lock()
        self._cached: dict[Scope, tuple[int, str, Board]] = {}

    @property
    def scopes(self) -> list[Scope]:
        """Return the groups."""
        return self._monitor.find()

    def of(self, scope: Scope) -> Board:
        """Return the board of a group."""
        status = self._monitor.status(scope)
        with self._lock:
            polls, error, cached = self._cached.get(scope, (-1, "", None))
            if cached is None or (polls, error) != (status.polls, status.error):
                cached = board(status)
                self._cached[scope] = status.polls, status.error, cached
            return cached
