"""What a piece of work costs, and how the sides take turns at it."""

import gc
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIDES = OURS, OFFICIAL, BARE = "ours", "official", "bare"


@dataclass(frozen=True)
class Cost:
    """What one operation cost.

    Attributes:
        cpu: seconds of processor time of this process, in all of its threads. The server and the
            proxy are processes of their own, and do not count.
        wall: seconds on the clock.
        memory: bytes in RAM at the most; only the imports have it, and only on Linux.
    """

    cpu: float
    wall: float
    memory: float | None = None


Round = dict[str, Cost]
"""The cost on each side, in one round."""
Rounds = Generator[Round, None, None]
"""One round after the other; closing it stops the servers that it has started."""
Case = Callable[[bool], Rounds]
"""Begins the rounds; the argument asks for small, quick ones."""


def in_turns(
    works: Mapping[str, Callable[[], Any]], number: int, *, turns: int = 1, operations: int = 1
) -> Round:
    """Let each side do its work `turns` times, each time so many operations in a row."""
    costs: dict[str, list[Cost]] = {side: [] for side in works}
    for turn in range(number, number + turns):
        for side in turned([*works], turn):
            costs[side].append(cost_of(works[side], operations))
    return {side: mean(each) for side, each in costs.items()}


def turned(sides: Sequence[str], number: int) -> Sequence[str]:
    """The sides, beginning with another one each time.

    What comes and goes on a shared machine, or is better for whoever is first, meets all of them.
    """
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


def cost_of(work: Callable[[], Any], operations: int) -> Cost:
    """The cost of one of so many operations in a row."""
    gc.collect()  # what the side before has left behind is not this one's to clear away
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(operations):
        work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(cpu / operations, wall / operations)


def mean(costs: list[Cost]) -> Cost:
    """The mean of several costs."""
    return Cost(
        sum(cost.cpu for cost in costs) / len(costs), sum(cost.wall for cost in costs) / len(costs)
    )
