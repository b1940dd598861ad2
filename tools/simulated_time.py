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
import logging
import random
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

EPOCH = 1_800_000_000.0
"""The simulated time of day at the start, in seconds since the epoch."""
DIGITS = 9
"""Decimals of the simulated seconds: sums of decimals such as 0.1 + 0.2 compare exactly, and what
is cut off is below the resolution with which asyncio compares times."""
QUIET = ("azure.eventhub", "eventhub_checkpoints")
"""Loggers that report every stolen partition and every throttled request."""

T = TypeVar("T")


class Clock(selectors.SelectSelector):
    """A clock, and the selector that moves it on instead of waiting for I/O, of which is none.

    The functions of `time` are replaced by its own, because the SDK's load balancer, the store and
    asyncio read them. Threads would still wait in real time, so there are none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that cannot happen")
        self.now = round(self.now + max(timeout, 0.0), DIGITS)
        return []

    def monotonic(self) -> float:
        """Replace `time.monotonic`."""
        return self.now

    def time(self) -> float:
        """Replace `time.time`."""
        return EPOCH + self.now


_running: list[Clock] = []


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


@contextmanager
def simulation(seed: int = 0) -> Iterator[asyncio.Runner]:
    """Give a runner whose event loop, and `time`, are on a simulated clock.

    The clock starts at 0, or where that of the simulation around this one stands. It moves only
    while the runner runs something: a test may look, and plan, between two runs.
    """
    clock, state = Clock(), random.getstate()
    clock.now = _running[-1].now if _running else 0.0
    random.seed(seed)
    _running.append(clock)
    try:
        with (
            patch.object(time, "monotonic", clock.monotonic),
            patch.object(time, "time", clock.time),
            asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(clock)) as runner,
        ):
            yield runner
    finally:
        _running.pop()
        random.setstate(state)


def simulate(main: Callable[[], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a coroutine function on a simulated clock that starts at 0.

    The result depends on the seed only, within processes of the same `PYTHONHASHSEED`: the SDK
    iterates over sets of partition ids.

    Raises:
        RuntimeError: every task waits, and no timer is left that could end a wait.
    """
    with simulation(seed) as runner:
        return runner.run(main())


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
