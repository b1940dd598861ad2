"""A replay window holds both of its bounds, at every moment of simulated time and at any rate."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.processing.policy import MOST_GROUPS, PARTS, Policy, trailing
from eventhub_checkpoints.processing.watermark import Position

pytestmark = pytest.mark.waits

TINY = 1e-6
"""Seconds that sums of floats may be off by."""


def position(count: int) -> Position:
    return Position(count - 1, str(count))


class Steady(Sequence[float]):
    """The times of events that finish at a constant rate."""

    def __init__(self, rate: float, seconds: float) -> None:
        self.rate, self.events = rate, int(rate * seconds)

    def __len__(self) -> int:
        return self.events

    def __getitem__(self, index: Any) -> Any:
        return (index + 1) / self.rate


@dataclass
class Story:
    """What happened: the worst of both bounds, and what it took."""

    most_unsaved: int = 0
    longest_unsaved: float = 0.0
    looks: int = 0
    most_groups: int = 0
    saves: list[tuple[float, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


def run(
    policy: Any,
    times: Sequence[float],
    until: float,
    write: float = 0.0,
    curious: Sequence[float] = (),
) -> Story:
    """Let events finish at these times, and ask the plan when it says, and out of curiosity.

    What is unsaved only grows between two looks, so it is worst just before one.
    """
    plan, story, now, saved = policy.begin(0.0), Story(), 0.0, 0
    unasked = deque(curious)
    while True:
        wakes = plan.wake_count - 1
        finished_at = times[wakes] if wakes < len(times) else math.inf
        timer = min(plan.wake_time, unasked[0] if unasked else math.inf)
        now = max(min(finished_at, timer), now)
        if now > until:
            return story
        if unasked and now == timer == unasked[0]:
            unasked.popleft()
        count = wakes + 1 if finished_at <= timer else bisect_right(times, now)
        story.looks += 1
        story.most_unsaved = max(story.most_unsaved, count - saved)
        if count > saved:
            story.longest_unsaved = max(story.longest_unsaved, now - times[saved])
        while due := plan.look(count, position(count), now):
            # The shell does not look during a write, and looks right after it.
            now += write
            count = bisect_right(times, now) if write else count
            assert due.count > saved, "a save that saves nothing"
            assert due.position == position(due.count)
            saved = due.count
            plan.saved(saved, now)
            story.looks += 1
            story.saves.append((now, saved))
            story.left.append(count - saved)
        assert plan.wake_count > count
        assert plan.wake_time > now
        story.most_groups = max(story.most_groups, len(plan._unsaved))


WINDOWS = [
    trailing(events=2000, seconds=300, check_every=15),
    trailing(events=1000, seconds=30, check_every=15),
    trailing(events=300_000, seconds=2, check_every=0.5),
    trailing(events=10, seconds=20),
]
RATES = {0.1: 3600.0, 1: 3600.0, 10: 1200.0, 100: 900.0, 5_000: 12.0, 100_000: 2.1}
"""Seconds that are simulated of each rate, in events a second."""


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_both_bounds_hold_at_every_rate_and_the_window_is_kept(
    tell: Callable[[str, str], None], window: Any, rate: float
) -> None:
    duration = RATES[rate]
    story = run(window, Steady(rate, duration), duration)
    assert story.most_unsaved <= window.events
    assert story.longest_unsaved <= window.seconds + TINY
    # Each save by count frees half of the events, each by time has a check of its own.
    by_count = rate * duration / (window.events - window.events // 2)
    assert len(story.saves) <= by_count + duration / window.check_every + 1
    # What is left is what the rule leaves, less one group of rounding.
    kept = window.seconds - window.check_every - window.seconds / PARTS
    least = min(window.events // 2 - math.ceil(window.events / PARTS), rate * kept) - 1
    assert story.saves
    assert min(story.left) >= least
    assert story.most_groups <= MOST_GROUPS
    tell(
        "trailing",
        f"{rate:>9,} events/s, {window!r}: at most {story.most_unsaved} unsaved, for at most "
        f"{story.longest_unsaved:.1f} s; at least {min(story.left)} after a save; of "
        f"{int(rate * duration)} events {len(story.saves)} saves, {story.looks} looks, "
        f"{story.most_groups} groups",
    )


@pytest.mark.parametrize("rate", [1_000, 5_000, 100_000])
def test_looks_are_rarer_than_events(rate: float) -> None:
    story = run(WINDOWS[0], Steady(rate, 6), 6)
    assert story.looks <= rate * 6 / (2000 / PARTS) * 1.2


@st.composite
def windows(draw: st.DrawFn) -> Policy:
    seconds = draw(st.floats(0.5, 400))
    check_every = draw(st.floats(seconds / 50, seconds))
    return trailing(events=draw(st.integers(1, 3000)), seconds=seconds, check_every=check_every)


gaps = st.one_of(st.just(0.0), st.floats(0, 0.01), st.floats(0, 5), st.floats(100, 2000))
"""Seconds between two events: bursts, a flow, a trickle, idle times."""
arrivals = st.lists(st.tuples(gaps, st.integers(1, 400)), max_size=20).map(
    lambda bursts: list(accumulate(gap for gap, number in bursts for _ in range(number)))
)


@given(windows(), arrivals)
def test_both_bounds_hold_for_any_arrivals(window: Any, times: list[float]) -> None:
    end = times[-1] if times else 0.0
    story = run(window, times, end + 2 * window.seconds)
    assert story.most_unsaved <= window.events
    assert story.longest_unsaved <= window.seconds + TINY
    assert story.most_groups <= MOST_GROUPS
    assert (story.saves[-1][1] if story.saves else 0) == len(times), "idle, and not all is saved"


@given(windows(), arrivals, st.floats(0, 3))
def test_all_is_saved_in_the_end_however_long_writes_take(
    window: Any, times: list[float], write: float
) -> None:
    end = times[-1] if times else 0.0
    story = run(window, times, end + 2 * window.seconds + 1000 * write, write)
    assert story.saves == sorted(story.saves)
    assert (story.saves[-1][1] if story.saves else 0) == len(times)
    assert story.most_groups <= MOST_GROUPS


@pytest.mark.parametrize("rate", [10, 5_000])
def test_a_window_that_keeps_nothing_does_not_save_without_a_pause(rate: float) -> None:
    story = run(trailing(events=10**9, seconds=5, check_every=5), Steady(rate, 60), 60, write=0.05)
    # A look at the very moment of a check cannot tell what is finished in that moment after it.
    assert len(story.saves) <= 2 * 60 / 5


def test_what_was_finished_during_a_write_waits_for_the_next_check() -> None:
    plan = trailing(events=10_000, seconds=10, check_every=10).begin(0.0)
    assert plan.look(1, position(1), 9.95) is None
    due = plan.look(50, position(50), 10.02)
    assert due is not None
    assert due.count == 50
    plan.saved(50, 10.06)
    assert plan.look(60, position(60), 10.06) is None
    assert plan.look(60, position(60), 20.0)


def test_time_is_checked_on_a_grid_that_begins_with_the_claim() -> None:
    window = trailing(events=1000, seconds=30, check_every=10)
    story = run(window, [3.0, 14.0, 95.0], 200)
    assert story.saves == [(30.0, 1), (40.0, 2), (120.0, 3)]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_an_idle_partition_is_left_alone(window: Any) -> None:
    assert run(window, [], 1e6).looks == 0
    # The event, the end of its group, the check, and the look after the save.
    assert run(window, [5.0], 1e6).looks <= 4


def test_the_first_event_after_an_idle_time_is_as_young_as_it_is() -> None:
    window = trailing(events=1000, seconds=30, check_every=10)
    times = [*(second / 100 for second in range(100)), 505.0]
    assert run(window, times, 1000).saves[-1] == (530.0, 101)


@pytest.mark.parametrize("check_every", [5, 15, 30])
def test_memory_is_bounded_even_if_nothing_can_be_saved(check_every: float) -> None:
    plan = trailing(events=2000, seconds=30, check_every=check_every).begin(0.0)
    now, count, most_groups = 0.0, 0, 0
    for step in range(2_000):
        count, now = count + step % 40 + 1, now + step % 7 / 10
        plan.look(count, position(count), now)
        most_groups = max(most_groups, len(plan._unsaved))  # type: ignore[attr-defined]
    assert most_groups == MOST_GROUPS
    due = plan.look(count, position(count), now)
    assert due is not None
    assert count - 2000 <= due.count <= count
    plan.saved(due.count, now)
    assert plan.look(count, position(count), now) is None


@given(windows(), arrivals, st.lists(st.floats(0, 3000), max_size=300).map(sorted))
def test_looking_more_often_keeps_the_bounds(
    window: Any, times: list[float], curious: list[float]
) -> None:
    end = max([0.0, *times[-1:], *curious[-1:]])
    story = run(window, times, end + 2 * window.seconds, curious=curious)
    assert story.most_unsaved <= window.events
    assert story.longest_unsaved <= window.seconds + TINY
    assert story.most_groups <= MOST_GROUPS
    assert (story.saves[-1][1] if story.saves else 0) == len(times)


@dataclass
class IothubReact:
    """The save algorithm of iothub-react: a bucket a second, popped whole at each check.

    Source: toketi-iothubreact 0.9, `checkpointing/CheckpointService.scala`.
    """

    count_threshold: int
    time_threshold: float
    buckets: deque[list[int]] = field(default_factory=deque)

    def update(self, count: int, now: float) -> None:
        if self.buckets and self.buckets[-1][1] == int(now):
            self.buckets[-1][0] = count
            self.buckets[-1][2] += 1
        else:
            self.buckets.append([count, int(now), 1])

    def check(self, now: float) -> int:
        saved = 0
        while self.buckets and (
            sum(bucket[2] for bucket in self.buckets) >= self.count_threshold
            or now - self.buckets[0][1] >= self.time_threshold
        ):
            saved = self.buckets.popleft()[0]
        return saved


def left_by_iothub_react(rate: int, duration: float, late: float) -> tuple[int, int]:
    """The most that is unsaved before a check, and the least after one."""
    theirs, saved = IothubReact(1000, 30), 0
    most, least, next_check = 0, rate * 60, 15 + late
    for count in range(1, int(rate * duration) + 1):
        now = count / rate
        if now > next_check:
            most = max(most, count - 1 - saved)
            saved = theirs.check(next_check) or saved
            least = min(least, count - 1 - saved)
            next_check += 15
        theirs.update(count, now)
    return most, least


def test_the_oracle_of_iothub_react_keeps_its_window_at_a_slow_rate() -> None:
    _, least = left_by_iothub_react(100, 120, late=0.01)
    assert 850 <= least < 1000


@pytest.mark.parametrize("late", [0.01, 0.5])
def test_the_window_that_iothub_react_loses_at_a_fast_rate_is_kept(
    tell: Callable[[str, str], None], late: float
) -> None:
    most, least = left_by_iothub_react(5_000, 65, late)
    assert most > 70 * 1000, "its bound is checked only every 15 s"
    assert least <= 50, "one second holds more than the threshold, so all of it is saved"
    ours = run(trailing(events=1000, seconds=30, check_every=15), Steady(5_000, 65), 65)
    assert ours.most_unsaved == 1000
    assert min(ours.left) >= 1000 // 2 - math.ceil(1000 / PARTS)
    tell(
        "trailing",
        f"5,000 events/s, countThreshold 1000: iothub-react has up to {most} unsaved and leaves "
        f"{least} after a check; trailing has up to {ours.most_unsaved} and leaves "
        f"{min(ours.left)} or more",
    )
