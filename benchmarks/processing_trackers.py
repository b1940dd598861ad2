"""The low watermark beside two other algorithms for it, and below the shells that use it."""

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

from azure.eventhub import PartitionContext
from azure.eventhub.aio import PartitionContext as AioPartitionContext

from benchmarks.measuring import in_turns
from benchmarks.spark_results import Figures
from eventhub_checkpoints import Checkpointer, MemoryCheckpointStore, Position, aio
from eventhub_checkpoints.processing.watermark import Watermark

WATERMARK, LINKED, HEAP = TRACKERS = ("ours", "list", "heap")
SHELL, SHELL_AIO = "shell", "shell, aio"
SIDES = (*TRACKERS, SHELL, SHELL_AIO)
NAMES = "bench.servicebus.windows.net", "hub", "$Default", "0"
BREATH = 100
"""Events after which an event loop has its turn."""

Orders = Sequence[Sequence[int]]
"""By window: in which order its events are finished."""


class Node:
    """An event that is not finished, between those before and after it."""

    __slots__ = ("after", "before", "count", "position")

    def __init__(self, before: Any, after: Any, position: Position | None, count: int) -> None:
        self.before = before
        self.after = after
        self.position = position
        self.count = count

    def done(self) -> None:
        """Hand position and count to the one before: who finishes that finishes both."""
        before, after = self.before, self.after
        before.position = self.position
        before.count = self.count
        before.after = after
        after.before = before


class LinkedList:
    """What is not finished as a doubly linked list; its head's predecessor is what may be saved.

    Source: redpanda-data/connect, `internal/checkpoint/uncapped.go`: the algorithm, not the text.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.head = Node(None, None, None, 0)
        self.tail = self.head.after = Node(self.head, None, None, 0)

    @property
    def position(self) -> Position | None:
        return self.head.position

    @property
    def count(self) -> int:
        return self.head.count

    def track(self, position: Position) -> Node:
        self.begun += 1
        tail = self.tail
        last = tail.before
        last.after = tail.before = node = Node(last, tail, position, self.begun)
        return node


class Entry:
    """An event of `HeapAndSet`."""

    __slots__ = ("position", "tracker")

    def __init__(self, tracker: "HeapAndSet", position: Position) -> None:
        self.tracker = tracker
        self.position = position

    def done(self) -> None:
        self.tracker.finish(self.position)


class HeapAndSet:
    """What was begun as a heap, and what of it is finished as a set of sequence numbers."""

    def __init__(self) -> None:
        self.position: Position | None = None
        self.count = 0
        self.begun: list[Position] = []
        self.finished: set[int] = set()

    def track(self, position: Position) -> Entry:
        heappush(self.begun, position)
        return Entry(self, position)

    def finish(self, position: Position) -> None:
        begun, finished = self.begun, self.finished
        finished.add(position.sequence_number)
        while begun and begun[0].sequence_number in finished:
            self.position = heappop(begun)
            finished.remove(self.position.sequence_number)
            self.count += 1


MAKE: dict[str, Callable[[], Any]] = {WATERMARK: Watermark, LINKED: LinkedList, HEAP: HeapAndSet}


def shuffled(events: int, window: int) -> Orders:
    """So many events, of which as many as the window holds are finished in any order."""
    chance = random.Random(window)
    sizes = [window] * (events // window) + ([events % window] if events % window else [])
    return [chance.sample(range(size), size) for size in sizes]


def positions_of(orders: Orders) -> list[list[Position]]:
    """The events of each window."""
    found, first = [], 0
    for order in orders:
        found.append([Position(one, str(64 * one)) for one in range(first, first + len(order))])
        first += len(order)
    return found


def finish_all(
    track: Callable[[Any], Any], positions: Sequence[Sequence[Position]], orders: Orders
) -> None:
    """Begin each window's events, then finish them."""
    for window, order in zip(positions, orders, strict=True):
        if len(window) == 1:  # a list of one would cost as much as a tracker
            track(window[0]).done()
            continue
        tracked_events = [track(one) for one in window]
        for one in order:
            tracked_events[one].done()


def with_shell(positions: Sequence[Sequence[Position]], orders: Orders) -> None:
    """The same by a `Checkpointer`, which writes to memory; a position can pass as an event."""
    with MemoryCheckpointStore() as store, Checkpointer(store) as shell:
        place = PartitionContext(*NAMES, store)
        shell.on_initialize(place)
        finish_all(partial(shell.track, place), positions, orders)


async def with_shell_aio(positions: Sequence[Sequence[Position]], orders: Orders) -> None:
    """The same in an event loop, which has a turn now and then, as between a client's frames."""
    async with aio.MemoryCheckpointStore() as store, aio.Checkpointer(store) as shell:
        place = AioPartitionContext(*NAMES, store)
        await shell.on_initialize(place)
        track = partial(shell.track, place)
        breath = 0
        for window, order in zip(positions, orders, strict=True):
            if len(window) == 1:
                (await track(window[0])).done()
            else:
                tracked_events = [await track(one) for one in window]
                for one in order:
                    tracked_events[one].done()
            breath += len(window)
            if breath >= BREATH:
                breath = 0
                await asyncio.sleep(0)


def trace(tracker: Any, orders: Orders) -> list[tuple[int, Position | None]]:
    """How many are passed, and the position, after each event that was finished."""
    found = []
    for window, order in zip(positions_of(orders), orders, strict=True):
        tracked_events = [tracker.track(one) for one in window]
        for one in order:
            tracked_events[one].done()
            found.append((tracker.count, tracker.position))
    return found


def check(orders: Orders) -> None:
    """See that all trackers say the same after every event.

    Raises:
        AssertionError: they do not.
    """
    first, *others = (trace(make(), orders) for make in MAKE.values())
    events = sum(map(len, orders))
    assert first[-1] == (events, positions_of(orders)[-1][-1])
    assert all(other == first for other in others), "the trackers disagree"


def one_round(orders: Orders, number: int) -> dict[str, Figures]:
    """Nanoseconds of processor time for each event, by side."""
    positions = positions_of(orders)

    def bare(make: Callable[[], Any]) -> None:
        finish_all(make().track, positions, orders)

    works = {name: partial(bare, make) for name, make in MAKE.items()}
    works[SHELL] = partial(with_shell, positions, orders)
    works[SHELL_AIO] = lambda: asyncio.run(with_shell_aio(positions, orders))
    costs = in_turns(works, number, each=sum(map(len, orders)))
    return {side: {"event": 1e9 * cost.cpu} for side, cost in costs.items()}
