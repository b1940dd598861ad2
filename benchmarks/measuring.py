"""What a piece of work costs, and how the sides take turns at it."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

SIDES = OURS, OFFICIAL, BARE = "ours", "official", "bare"

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end."""
Sides = dict[str, Any]
Open = Callable[[], AbstractContextManager[Sides]]
"""Gives all sides, each with the SDK's methods of a store."""
OpenAio = Callable[[], AbstractAsyncContextManager[Sides]]


@dataclass(frozen=True)
class Cost:
    """What one operation cost.

    Attributes:
        cpu: seconds of processor time of this process, in all of its threads. The server and the
            proxy are processes of their own, and do not count.
        wall: seconds on the clock.
        memory: bytes in RAM at the most; only the imports have it, and only on Linux.
        trips: how often an answer was waited for; only where it was counted.
        stall: the longest time in seconds for which an event loop ran nothing else; only where it
            was watched.
    """

    cpu: float
    wall: float
    memory: float | None = None
    trips: float | None = None
    stall: float | None = None

    @property
    def rate(self) -> float:
        """Operations in a second."""
        return 1 / self.wall


Round = dict[str, Cost]
"""The cost on each side, in one round."""
Rounds = Generator[Round, None, None]
"""One round after the other; closing it stops the servers that it has started."""
Case = Callable[[bool], Rounds]
"""Begins the rounds; the argument asks for small, quick ones."""


def in_turns(
    works: Mapping[str, Callable[[], Any]],
    number: int,
    *,
    turns: int = 1,
    operations: int = 1,
    each: int = 1,
) -> Round:
    """Let each side do its work `turns` times, each time so many operations in a row."""
    costs: dict[str, list[Cost]] = {side: [] for side in works}
    for turn in range(number, number + turns):
        for side in turned([*works], turn):
            costs[side].append(cost_of(works[side], operations, each))
    return {side: mean(each) for side, each in costs.items()}


def turned(sides: Sequence[str], number: int) -> Sequence[str]:
    """The sides, beginning with another one each time.

    What comes and goes on a shared machine, or is better for whoever is first, meets all of them.
    """
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]


def cost_of(work: Callable[[], Any], times: int, each: int = 1) -> Cost:
    """The cost of one operation, of which the work, done so many times in a row, has `each`."""
    gc.collect()  # what the side before has left behind is not this one's to clear away
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(cpu / (times * each), wall / (times * each))


def mean(costs: list[Cost]) -> Cost:
    """The mean of several costs."""
    return Cost(
        sum(cost.cpu for cost in costs) / len(costs), sum(cost.wall for cost in costs) / len(costs)
    )


def in_a_thread(case: Case, quick: bool) -> Rounds:
    """Rounds of a case in a thread: the sync client lists and claims in one that it starts.

    Source: azure-eventhub 5.15.1, `_eventprocessor/event_processor.py`, `start`.
    """
    with ThreadPoolExecutor(1) as pool:
        rounds = case(quick)
        try:
            while True:
                yield pool.submit(next, rounds).result()
        finally:
            pool.submit(rounds.close).result()


@contextmanager
def on_a_loop(opened: AbstractAsyncContextManager[T]) -> Iterator[tuple[Run, T]]:
    """An event loop that a plain function can run something on, and what was opened there."""
    with asyncio.Runner() as runner:
        found = runner.run(opened.__aenter__())
        try:
            # `Runner.run` would handle SIGINT anew for each call, which costs as much as a task.
            yield runner.get_loop().run_until_complete, found
        finally:
            runner.run(opened.__aexit__(None, None, None))


@contextmanager
def blocking(open_sides: OpenAio) -> Iterator[Sides]:
    """Open the sides of an event loop, with plain methods that run there."""
    with on_a_loop(open_sides()) as (run, found):
        yield {name: Blocking(side, run) for name, side in found.items()}


class Blocking:
    """A side whose methods end when the async side's have ended."""

    def __init__(self, side: Any, run: Run) -> None:
        self._side = side
        self._run = run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._side, name)
        return lambda *arguments: self._run(method(*arguments))
