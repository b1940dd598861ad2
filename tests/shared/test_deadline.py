"""Pauses grow, are spread, and never outlast the time that is left."""

import math

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints._shared.deadline import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    WORTHWHILE,
    attempt_limit,
    pause,
)

CHANCES = st.floats(0, 1)
SECONDS = st.floats(0, 1000)


@given(st.integers(0, 100_000), SECONDS, CHANCES)
def test_a_pause_leaves_time_for_another_attempt(attempt: int, left: float, chance: float) -> None:
    wait = pause(attempt, left, chance)
    if wait is not None:
        assert wait + WORTHWHILE < left


@given(st.integers(0, 100_000), CHANCES)
def test_a_pause_stays_between_half_the_first_and_the_longest(attempt: int, chance: float) -> None:
    wait = pause(attempt, math.inf, chance)
    assert wait is not None
    assert FIRST_PAUSE / 2 <= wait <= LONGEST_PAUSE


@given(st.integers(0, 20), CHANCES)
def test_a_later_pause_is_never_shorter(attempt: int, chance: float) -> None:
    first, second = (pause(number, math.inf, chance) for number in (attempt, attempt + 1))
    assert first is not None
    assert second is not None
    assert first <= second


def test_two_clients_do_not_come_back_in_step() -> None:
    assert pause(3, math.inf, 0.0) != pause(3, math.inf, 1.0)


def test_no_time_left_means_to_give_up() -> None:
    assert pause(0, 0.0, 0.5) is None


@given(SECONDS, st.floats(0.01, 1000))
def test_one_attempt_takes_at_most_half_of_the_whole(left: float, seconds: float) -> None:
    assert 0 <= attempt_limit(left, seconds) <= min(left, seconds / 2)
