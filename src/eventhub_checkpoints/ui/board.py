"""What the pages show of a group: its partitions as lanes, its members and its curve."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.monitor import UNREAD, Monitor, Status
from eventhub_checkpoints.operations.states import WINDOW, State, worst
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.observations import Observations, Point
from eventhub_checkpoints.ui.owners import BAR, Badge, Palette, Share, shares
from eventhub_checkpoints.ui.trend import Trend, curve, trend

SAMPLES = 60
"""Samples that are kept of each partition."""
BLOCK = 50
"""Lanes of a page; a group with more partitions is shown in blocks of as many."""
LEAST = 4
"""Width of the shortest part of a lane that can be seen."""
LONGEST_LOSS = 40
"""Width of the mark of lost events, whose number says nothing about the lag."""
CHART = 40
"""Height of the chart of a block in its own units."""


class Order(StrEnum):
    """Order of the partitions of a group."""

    NUMBER = "number"
    LAG = "lag"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Lane:
    """Partition of a group.

    Its bar ends at the newest event and begins at the checkpoint, so its length is the lag. Before
    it is the trail of the checkpoint: what was processed in the last samples.

    Attributes:
        moved: events by which the checkpoint has moved; None if that is unknown.
        badge: of its owner; None without one.
        lags: of the last samples, oldest first.
        reach: events that the whole width stands for.
    """

    position: PartitionLag
    state: State
    moved: int | None
    badge: Badge | None
    lags: Sequence[int | None]
    reach: int

    @property
    def trend(self) -> Trend:
        """Return the curve of its lag in the last samples."""
        return trend(self.lags, max(2, len(self.lags)))

    def _width(self, events: int) -> float:
        return round(max(LEAST, events * BAR / self.reach), 1) if events > 0 else 0.0

    @property
    def lag_width(self) -> float:
        """Return the width of the lag."""
        return min(float(BAR), self._width(self.position.lag or 0))

    @property
    def at(self) -> float:
        """Return where the checkpoint is."""
        return round(BAR - self.lag_width, 1)

    @property
    def trail_width(self) -> float:
        """Return the width of what was processed."""
        return min(self.at, self._width(self.moved or 0))

    @property
    def back_width(self) -> float:
        """Return the width of what is read again, because the checkpoint went back."""
        return min(self.lag_width, self._width(-(self.moved or 0)))

    @property
    def lost_width(self) -> float:
        """Return the width of the mark of lost events."""
        return min(float(LONGEST_LOSS), self._width(self.position.lost))

    @property
    def lost_at(self) -> float:
        """Return where the mark of lost events is: before the checkpoint, if there is room."""
        return round(max(0.0, self.at - self.lost_width), 1)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lanes of a group with many partitions.

    Attributes:
        number: from 1.
        first, last: partitions, in the order that was chosen.
        state: the worst of its partitions.
        charts: by the class of a severity, the path of a line for each partition whose length is
            its lag.
    """

    number: int
    first: str
    last: str
    partitions: int
    lag: int | None
    state: State
    charts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Flow:
    """Events of a group per second, in the last samples.

    Attributes:
        arrived: by which the hub has grown; None if that is unknown.
        processed: by which the checkpoints have moved; None if that is unknown.
    """

    arrived: float | None
    processed: float | None

    def seconds_left(self, lag: int | None) -> float | None:
        """Return the seconds until a lag is processed; None if it grows, or is unknown."""
        if lag is None or self.arrived is None or self.processed is None:
            return None
        faster = self.processed - self.arrived
        return lag / faster if lag and faster > 0 else None


@dataclass(frozen=True)
class Board:
    """Group as the pages show it.

    Attributes:
        sample: the latest sample; None before the first poll.
        error: why the lag is unknown now; `""` if it is known.
        state: the worst of its partitions; UNKNOWN if the lag is unknown now.
        members: number of live members that own a partition.
        curve: lag of the last hour, or since the first poll.
        span: seconds that the curve stands for.
        seconds: time in which the checkpoints have moved.
        lanes: the partitions in numeric order.
        shares: what each member has, the largest first, and last what nobody has.
    """

    scope: Scope
    sample: GroupLag | None
    error: str
    state: State
    members: int
    curve: Trend
    span: float
    seconds: float
    flow: Flow
    lanes: Sequence[Lane]
    shares: Sequence[Share] = field(repr=False)

    @property
    def is_unread(self) -> bool:
        """Return whether the first poll has not ended."""
        return self.error == UNREAD

    @property
    def meaning(self) -> str:
        """Return what its state means."""
        return self.error or f"Worst partition: {self.state.meaning}"

    @cached_property
    def attention(self) -> int:
        """Return the number of partitions whose state is not as expected."""
        return sum(bool(lane.state.severity) for lane in self.lanes)

    @property
    def states(self) -> list[State]:
        """Return the states of its partitions, the worst first."""
        return sorted({lane.state for lane in self.lanes}, key=lambda state: -state.rank)

    def arranged(
        self, order: Order, *, attention: bool = False, owner_id: str | None = None
    ) -> list[Lane]:
        """Return the lanes in an order.

        Args:
            order: an unknown lag counts as the highest.
            attention: leave out those whose state is as expected.
            owner_id: only those of this owner; `""`: only those without one; None: all.
        """
        lanes = [
            lane
            for lane in self.lanes
            if (not attention or lane.state.severity)
            and (owner_id is None or lane.position.owner_id == owner_id)
        ]
        if order is Order.LAG:
            lanes.sort(key=lambda lane: (lane.position.lag is not None, -(lane.position.lag or 0)))
        elif order is Order.STATE:
            lanes.sort(key=lambda lane: -lane.state.rank)
        return lanes


def blocks(lanes: Sequence[Lane]) -> list[Block]:
    """Divide lanes into blocks; none if one page has them all."""
    if len(lanes) <= BLOCK:
        return []
    highest = max(lane.position.lag or 0 for lane in lanes) or 1
    return [
        block(number, lanes[begin : begin + BLOCK], highest)
        for number, begin in enumerate(range(0, len(lanes), BLOCK), 1)
    ]


def block(number: int, lanes: Sequence[Lane], highest: int) -> Block:
    """Return a block; `highest` is the lag that the height of its chart stands for."""
    charts: dict[str, str] = {}
    for place, lane in enumerate(lanes):
        height = max(2.0, (lane.position.lag or 0) * CHART / highest)
        name = severity_class(lane.state)
        charts[name] = f"{charts.get(name, '')}M{place * 2 + 1} {CHART}v-{height:.1f}"
    lags = [lane.position.lag for lane in lanes]
    return Block(
        number,
        lanes[0].position.partition_id,
        lanes[-1].position.partition_id,
        len(lanes),
        None if None in lags else sum(each for each in lags if each),
        worst(lane.state for lane in lanes),
        charts,
    )


def severity_class(state: State) -> str:
    """Return the class of the style sheet for the severity of a state."""
    return ("good", "doubt", "bad", "unknown")[state.severity]


def moves(samples: Sequence[GroupLag]) -> dict[str, int]:
    """Return by how many events each checkpoint has moved, where that is known."""
    first = {each.partition_id: each for each in samples[0].partitions} if samples else {}
    moved = {}
    for each in samples[-1].partitions if samples else ():
        before = first.get(each.partition_id)
        if before and before.checkpoint is not None and each.checkpoint is not None:
            moved[each.partition_id] = each.checkpoint - before.checkpoint
    return moved


def flow(samples: Sequence[GroupLag], moved: Iterable[int]) -> Flow:
    """Return what arrived and was processed per second; a rewind counts as nothing processed."""
    seconds = samples[-1].time - samples[0].time if samples else 0.0
    if seconds <= 0:
        return Flow(None, None)
    ends = {each.partition_id: each.last for each in samples[0].partitions}
    arrived = sum(
        max(0, each.last - ends[each.partition_id])
        for each in samples[-1].partitions
        if each.partition_id in ends
    )
    return Flow(arrived / seconds, sum(max(0, each) for each in moved) / seconds)


def board(status: Status, observations: Observations, palette: Palette) -> Board:
    """Return what the pages show of a group."""
    window = status.window[-SAMPLES:]
    recent = window[-WINDOW:]
    lags: dict[str, list[int | None]] = {}
    for number, sample in enumerate(window):
        for position in sample.partitions:
            # A partition that was added later is unknown in the samples before.
            each = lags.setdefault(position.partition_id, [None] * number)
            each.append(position.lag)
    newest = window[-1] if window else None
    positions = newest.partitions if newest else ()
    states, moved = status.states, moves(recent)
    badges = palette.assign({each.owner_id for each in positions if each.owner_id})
    reach = max(
        ((each.lag or 0) + max(0, moved.get(each.partition_id, 0)) for each in positions),
        default=0,
    )
    points: Sequence[Point] = observations.points(status.scope)
    return Board(
        status.scope,
        newest,
        status.error,
        status.state,
        newest.members if newest else 0,
        curve(points),
        points[-1][0] - points[0][0] if points else 0.0,
        recent[-1].time - recent[0].time if recent else 0.0,
        flow(recent, moved.values()),
        [
            Lane(
                position,
                states[position.partition_id],
                moved.get(position.partition_id),
                badges.get(position.owner_id),
                lags[position.partition_id],
                reach or 1,
            )
            for position in positions
        ],
        shares(positions, badges, observations.holdings(status.scope)),
    )


class Boards:
    """Boards of the groups that a monitor polls, computed once for each poll."""

    def __init__(self, monitor: Monitor, observations: Observations) -> None:
        self._monitor, self._observations = monitor, observations
        self._lock = threading.Lock()
        self._cached: dict[Scope, tuple[int, str, Board]] = {}
        self._palettes: dict[Scope, Palette] = {}

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
                palette = self._palettes.setdefault(scope, Palette())
                cached = board(status, self._observations, palette)
                self._cached[scope] = status.polls, status.error, cached
            return cached
