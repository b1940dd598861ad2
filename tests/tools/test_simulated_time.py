"""The simulated clock: exact seconds, several calls on one clock, and no wait that never ends."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from simulated_time import now, simulate, simulation


async def slept(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return now()


def test_seconds_are_exact_and_a_day_passes_at_once() -> None:
    async def main() -> list[float]:
        return [await slept(seconds) for seconds in (0.1, 0.2, 86_400)]

    assert simulate(main) == [0.1, 0.3, 86_400.3]


def test_calls_of_a_test_that_is_not_async_share_one_clock() -> None:
    with simulation() as running:
        assert running.finished(slept(5)) == 5
        assert running.finished("no coroutine") == "no coroutine"
        running.elapse(1.5)
        assert now() == 6.5
        assert running.eventually(lambda: now() > 7)
    with pytest.raises(RuntimeError, match="no simulation is running"):
        now()


def test_a_call_beside_the_test_goes_on_while_time_passes() -> None:
    with simulation() as running:
        begun = running.begin(slept(5))
        running.elapse(4)
        assert not begun.done()
        with pytest.raises(TimeoutError):
            begun.result(0.5)
        assert begun.result() == 5


def test_a_call_beside_the_test_can_be_cancelled() -> None:
    with simulation() as running:
        begun = running.begin(slept(5))
        running.elapse(1)
        assert begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            begun.result()


def test_what_does_not_come_about_is_said() -> None:
    with simulation() as running, pytest.raises(AssertionError, match="not in 7 simulated s"):
        running.eventually(lambda: False, 7)


def test_a_wait_for_what_cannot_happen_is_an_error() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="cannot happen"):
        simulate(main)


def test_who_waits_for_a_time_with_more_decimals_gets_past_it() -> None:
    """As one who looks whether a retry is due that has a random pause."""

    async def main() -> int:
        due, looks = now() + 0.123456789123, 0
        while (left := due - now()) > 0:
            looks += 1
            await asyncio.sleep(left)
        return looks

    assert simulate(main) < 10


def test_a_thread_beside_a_simulation_has_its_own_time_and_random_numbers() -> None:
    def drawn(beside: Callable[[], object]) -> list[float]:
        with simulation(seed=3), ThreadPoolExecutor(1) as pool:
            first = random.random()
            pool.submit(beside).result()
            return [first, random.choice(range(1000)), random.uniform(0, 1)]

    is_real = threading.Event()

    def reads_a_clock() -> None:
        if time.monotonic():  # the simulated one stands at 0
            is_real.set()

    others = [random.random, lambda: random.choice("abc"), reads_a_clock]
    assert [drawn(beside) for beside in others] == [drawn(int)] * 3
    assert is_real.is_set()
