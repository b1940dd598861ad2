"""Event loop on a simulated clock: every wait ends at once, and the clock moves on by it.

A test of a rule about time runs its aio variant here, and compares seconds with `==`:

    async def hung_list() -> float:
        began = now()
        with pytest.raises(StoreUnavailableError):
            await store.list_ownership(*scope)
        return now() - began

    assert simulate(hung_list) == 30.0
"""

import asyncio
import inspect
import logging
import random
import selectors
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar
from unittest.mock import patch

EPOCH = 1_800_000_000.0
"""The simulated time of day at the start, in seconds since the epoch."""
DIGITS = 9
"""Decimals of the simulated seconds: sums of decimals such as 0.1 + 0.2 compare exactly, and what
is cut off is below the resolution with which asyncio compares times."""
MOST_STOPPED = 3
"""Waits in a row, each shorter than the last decimal, after which the clock moves on."""
QUIET = ("azure.eventhub", "eventhub_checkpoints")
"""Loggers that report every partition that is taken over and every throttled request."""

POLL, LONGEST_POLL = 0.01, 0.5
"""Simulated seconds between two looks whether a condition holds: at first, and after a while."""
PATIENCE = 100.0
"""Simulated seconds after which what a test waits for counts as lost."""

DRAWS = ("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle")
"""Functions of `random` that a simulation replaces."""
REAL_MONOTONIC, REAL_TIME = time.monotonic, time.time

T = TypeVar("T")


class ThreadRandom(random.Random):
    """Random numbers of a seed for the thread that creates it, and of the system for all others.

    A thread that an earlier test has left behind would change what is drawn here.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._thread = threading.get_ident()
        self._system = random.SystemRandom()

    def random(self) -> float:
        """Return a number from 0 to 1."""
        return super().random() if self._is_own() else self._system.random()

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of so many bits."""
        return super().getrandbits(k) if self._is_own() else self._system.getrandbits(k)

    def _is_own(self) -> bool:
        return threading.get_ident() == self._thread


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have the functions of `random` depend on the seed only, in this thread and block."""
    drawn = ThreadRandom(seed)
    with ExitStack() as replaced:
        for name in DRAWS:
            replaced.enter_context(patch.object(random, name, getattr(drawn, name)))
        yield


class Clock(selectors.SelectSelector):
    """A clock, and the selector that moves it on instead of waiting for I/O, of which is none.

    The functions of `time` are replaced by its own, because the SDK's load balancer, the store and
    asyncio read them. Threads would still wait in real time, so there are none; those that an
    earlier test has left behind go on reading the real time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._stopped = 0
        self._thread = threading.get_ident()

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that cannot happen")
        before = self.now
        self.now = round(before + max(timeout, 0.0), DIGITS)
        # Who waits for a time with more decimals would look again and again just before it.
        self._stopped = 0 if self.now > before else self._stopped + (timeout > 0)
        if self._stopped > MOST_STOPPED:
            self.now = round(before + 10**-DIGITS, DIGITS)
        return []

    def monotonic(self) -> float:
        """Replace `time.monotonic`."""
        return self.now if self._is_own() else REAL_MONOTONIC()

    def time(self) -> float:
        """Replace `time.time`."""
        return EPOCH + self.now if self._is_own() else REAL_TIME()

    def _is_own(self) -> bool:
        return threading.get_ident() == self._thread


_running: list[Clock] = []


def is_running() -> bool:
    """Return whether time is simulated at present."""
    return bool(_running)


def now() -> float:
    """Return the seconds since the start of the simulation that is running.

    Raises:
        RuntimeError: none is running, so the seconds would be real ones.
    """
    if not _running:
        raise RuntimeError("no simulation is running")
    return _running[-1].now


def stall(seconds: float) -> None:
    """Let time pass in which the event loop runs nothing: its process is busy, or suspended."""
    _running[-1].now = round(now() + seconds, DIGITS)


class Simulation:
    """Event loop on a simulated clock, in which the calls of a test that is not async run.

    Between two calls nothing happens, and no time passes.
    """

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner

    def finished(self, result: Any) -> Any:
        """Return the result of a call, awaited if it is awaitable."""
        if not inspect.isawaitable(result):
            return result
        return self.runner.get_loop().run_until_complete(_waited(result))

    def begin(self, result: Awaitable[T]) -> "Begun[T]":
        """Begin a call that goes on beside the test, during each of its next calls."""
        return Begun(self, self.runner.get_loop().create_task(_waited(result)))

    def elapse(self, seconds: float) -> None:
        """Let time pass."""
        self.finished(asyncio.sleep(seconds))

    def eventually(self, predicate: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Return the predicate's result when it is true.

        Whoever compares seconds afterwards lets them `elapse` instead: the looks become rarer.
        """
        # The predicate is called outside of the loop, so that it may call `finished` itself.
        deadline, poll = now() + seconds, POLL
        while not (found := predicate()):
            assert now() < deadline, f"not in {seconds:g} simulated s"
            self.elapse(poll)
            poll = min(poll * 1.1, LONGEST_POLL)
        return found


class Begun(Generic[T]):
    """Call that runs beside the test."""

    def __init__(self, simulation: Simulation, task: "asyncio.Task[T]") -> None:
        self._simulation = simulation
        self._task = task

    def done(self) -> bool:
        """Return whether it has ended."""
        return self._task.done()

    def cancel(self) -> bool:
        """Cancel it."""
        return self._task.cancel()

    def result(self, seconds: float | None = None) -> T:
        """Wait for its result, and raise what it raises.

        Raises:
            TimeoutError: it has not ended within these simulated seconds.
        """
        self._simulation.finished(asyncio.wait([self._task], timeout=seconds))
        if not self._task.done():
            raise TimeoutError
        return self._task.result()


async def _waited(result: Awaitable[T]) -> T:
    return await result


@contextmanager
def simulation(seed: int = 0) -> Iterator[Simulation]:
    """Replace time during the block, by a clock that starts at 0.

    Within another simulation, the clock starts where that one's stands.

    What happens depends on the seed only, within processes of the same `PYTHONHASHSEED`: the SDK
    iterates over sets of partition ids.
    """
    clock = Clock()
    clock.now = _running[-1].now if _running else 0.0
    _running.append(clock)
    try:
        with (
            seeded(seed),
            patch.object(time, "monotonic", clock.monotonic),
            patch.object(time, "time", clock.time),
            asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(clock)) as runner,
        ):
            yield Simulation(runner)
    finally:
        _running.pop()


def simulate(main: Callable[[], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a coroutine function on a simulated clock; see `simulation`.

    Raises:
        RuntimeError: every task waits, and no timer is left that could end a wait.
    """
    with simulation(seed) as running:
        return running.runner.run(main())


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the loggers in `QUIET`."""
    levels = {name: logging.getLogger(name).level for name in QUIET}
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
