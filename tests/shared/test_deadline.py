"""A call ends at its deadline; pauses grow, are spread, and never outlast the time that is left."""

import asyncio
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints._shared.deadline import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    LONGEST_SECONDS,
    WORTHWHILE,
    attempt_limit,
    backoff,
    bound,
    bounded_context,
    deadline,
    pause,
    seconds_left,
    set_unreachable_timeout,
    shorten_if_unreachable,
)
from simulated_time import simulate

CHANCES = st.floats(0, 1)
SECONDS = st.floats(0, 1000)


def test_a_call_without_a_deadline_has_a_limit_for_each_request() -> None:
    assert seconds_left() == math.inf
    assert bound() == LONGEST_SECONDS


def test_a_request_may_take_what_is_left_until_the_deadline() -> None:
    async def call() -> list[float]:
        left = []
        with deadline(10):
            for seconds in (0, 4, 5.5):
                await asyncio.sleep(seconds)
                left.append(bound())
        return left

    assert simulate(call) == [10, 6, 0.5]


def test_a_request_at_the_deadline_or_after_it_is_not_started() -> None:
    async def call() -> None:
        with deadline(10):
            for seconds in (10, 5):
                await asyncio.sleep(seconds)
                assert seconds_left() == 0
                with pytest.raises(TimeoutError, match="no time was left"):
                    bound()

    simulate(call)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_block_without_any_time_is_not_run(seconds: float) -> None:
    with pytest.raises(TimeoutError, match="no time was left"), deadline(seconds):
        pytest.fail("the block ran")


def test_the_earlier_of_two_deadlines_counts_and_each_ends_with_its_block() -> None:
    async def call() -> list[float]:
        left = []
        with deadline(10):
            with deadline(1):
                left.append(seconds_left())
            left.append(seconds_left())
            with deadline(20):
                left.append(seconds_left())
            left.append(bounded_context(20).run(seconds_left))
            left.append(bounded_context(1).run(seconds_left))
            left.append(seconds_left())
        return [*left, seconds_left()]

    assert simulate(call) == [1, 10, 10, 10, 1, 10, math.inf]


def test_a_block_may_end_in_another_context() -> None:
    async def unfinished() -> None:
        with deadline(10):
            await asyncio.sleep(0)

    call = unfinished()
    bounded_context(20).run(call.send, None)
    call.close()  # as the garbage collector does, in the context that happens to run
    assert seconds_left() == math.inf


def test_a_server_that_refuses_connections_brings_the_deadline_forward_never_back() -> None:
    async def call(seconds: float) -> list[float]:
        with deadline(seconds):
            left = [shorten_if_unreachable()]
            set_unreachable_timeout(5)
            left.append(seconds_left())  # nothing was refused yet
            left.append(shorten_if_unreachable())
            await asyncio.sleep(2)
            left.append(shorten_if_unreachable())  # refused again
            return [*left, seconds_left()]

    assert simulate(partial(call, 30)) == [30, 30, 5, 3, 3]
    assert simulate(partial(call, 4)) == [4, 4, 4, 2, 2]


def test_an_attempt_has_half_of_the_time_so_that_another_one_can_be_made() -> None:
    assert attempt_limit(30.0) == 15.0


@given(st.integers(0, 100_000), SECONDS, CHANCES)
def test_a_pause_leaves_time_for_another_attempt(attempt: int, left: float, chance: float) -> None:
    wait = pause(attempt, left, chance)
    if wait is not None:
        assert wait + WORTHWHILE < left


@given(st.integers(0, 100_000), CHANCES)
def test_a_pause_stays_between_half_the_first_and_the_longest(attempt: int, chance: float) -> None:
    assert FIRST_PAUSE / 2 <= backoff(attempt, chance) <= LONGEST_PAUSE
    assert pause(attempt, math.inf, chance) == backoff(attempt, chance)


@given(st.integers(0, 20), CHANCES)
def test_a_later_pause_is_never_shorter(attempt: int, chance: float) -> None:
    assert backoff(attempt, chance) <= backoff(attempt + 1, chance)


def test_pauses_double_from_the_first_to_the_longest_and_chance_spreads_the_upper_half() -> None:
    longest, middle, shortest = (
        [backoff(attempt, chance) for attempt in range(7)] for chance in (1.0, 0.5, 0.0)
    )
    assert longest == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    assert middle == pytest.approx([0.075, 0.15, 0.3, 0.6, 1.2, 2.25, 2.25])
    assert shortest == [0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 1.5]


def test_a_pause_that_leaves_just_less_than_an_attempt_needs_is_not_taken() -> None:
    needed = FIRST_PAUSE + WORTHWHILE
    assert pause(0, needed, 1.0) is None
    assert pause(0, math.nextafter(needed, math.inf), 1.0) == FIRST_PAUSE


def test_the_last_pauses_become_shorter_so_that_no_time_is_left_unused() -> None:
    left, waits, attempt = 5.0, [], 0
    while (wait := pause(attempt, left, 1.0)) is not None:
        waits.append(wait)
        left -= wait
        attempt += 1
    assert waits[:5] == [0.1, 0.2, 0.4, 0.8, 1.6]
    assert waits[5] == pytest.approx(0.95)
    assert left <= FIRST_PAUSE + WORTHWHILE


def test_two_clients_do_not_come_back_in_step() -> None:
    assert backoff(3, 0.0) != backoff(3, 1.0)


def test_no_time_left_means_to_give_up() -> None:
    assert pause(0, 0.0, 0.5) is None
