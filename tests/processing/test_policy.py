"""Policies against the plainest oracle, asked only when their plans say so."""

import math
import pickle
from bisect import bisect_right
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.processing.policy import Policy, all_of, any_of, every, trailing
from eventhub_checkpoints.processing.watermark import Position

Saves = list[tuple[float, int]]
"""When, and how many events are saved then."""


def position(count: int) -> Position | None:
    return Position(count + 99, str(count)) if count else None


class Oracle:
    """What a policy should say, asked at every tick and after every event."""

    def __init__(self, policy: Any, times: Sequence[int]) -> None:
        self.kind, self.policy, self.times = type(policy).__name__, policy, times
        self.saved, self.saved_at = 0, 0
        self.parts = [Oracle(part, times) for part in getattr(policy, "policies", ())]

    def due(self, count: int, now: int) -> int:
        """How many events should be saved; 0: none."""
        return getattr(self, self.kind)(count, now) if count > self.saved else 0

    def Every(self, count: int, now: int) -> int:  # noqa: N802
        events, seconds = self.policy.events, self.policy.seconds
        enough = events is not None and count - self.saved >= events
        return count if enough or (seconds and now - self.saved_at >= seconds) else 0

    def Trailing(self, count: int, now: int) -> int:  # noqa: N802
        enough = count - self.saved >= self.policy.events
        by_count = count - self.policy.events // 2 if enough else 0
        checked_at = now // self.policy.check_every * self.policy.check_every
        old = checked_at - (self.policy.seconds - self.policy.check_every)
        through = max(by_count, bisect_right(self.times[:count], old))
        return through if through > self.saved else 0

    def AnyOf(self, count: int, now: int) -> int:  # noqa: N802
        return max(part.due(count, now) for part in self.parts)

    def AllOf(self, count: int, now: int) -> int:  # noqa: N802
        return min(part.due(count, now) for part in self.parts)

    def save(self, count: int, now: int) -> None:
        self.saved, self.saved_at = count, now
        for part in self.parts:
            part.save(count, now)


def saves_of_the_oracle(policy: Policy, times: Sequence[int], until: int) -> Saves:
    oracle, saves, count = Oracle(policy, times), [], 0
    for now in range(until + 1):
        arriving = [None, *(time for time in times if time == now)]
        for event in arriving:
            count += event is not None
            while due := oracle.due(count, now):
                oracle.save(due, now)
                saves.append((now, due))
    return saves


def saves_of_the_plan(policy: Policy, times: Sequence[int], until: int) -> Saves:
    plan, saves, count, now = policy.begin(0.0), [], 0, 0.0
    while True:
        finished_at = times[count] if count < len(times) else math.inf
        now = min(finished_at, max(plan.wake_time, now))
        if now > until:
            return saves
        # A wake-up comes before the events of its moment, as the oracle's tick does.
        if plan.wake_time > now:
            count += 1
            if count < plan.wake_count:
                continue
        while due := plan.look(count, position(count), now):
            assert due == plan.look(count, position(count), now), "due until it is saved"
            assert due.position == position(due.count)
            plan.saved(due.count, now)
            saves.append((now, due.count))
        assert plan.wake_count > count
        assert plan.wake_time > now


seconds = st.integers(1, 20)
everies = st.one_of(
    st.builds(lambda events: every(events=events), st.integers(1, 30)),
    st.builds(lambda seconds: every(seconds=seconds), seconds),
    st.builds(lambda events, seconds: every(events=events, seconds=seconds), seconds, seconds),
)


@st.composite
def small_trailings(draw: st.DrawFn) -> Policy:
    """So few events that no two share a group, and nothing is rounded."""
    longest = draw(seconds)
    check_every = draw(st.integers(1, longest))
    return trailing(events=draw(st.integers(1, 64)), seconds=longest, check_every=check_every)


@st.composite
def arrivals(draw: st.DrawFn) -> list[int]:
    """Bursts, single events and idle times, in whole seconds."""
    times, now = [], 0
    for gap, burst in draw(
        st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=12)
    ):
        now += gap
        times += [now] * burst
    return times


def nested(inner: st.SearchStrategy[Policy]) -> st.SearchStrategy[Policy]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda policies: any_of(*policies)),
        several.map(lambda policies: all_of(*policies)),
    )


@pytest.mark.parametrize(
    "policies",
    [everies, small_trailings(), st.recursive(st.one_of(everies, small_trailings()), nested)],
    ids=["every", "trailing", "nested"],
)
def test_a_plan_that_is_asked_when_it_says_saves_as_one_that_is_always_asked(
    policies: st.SearchStrategy[Policy],
) -> None:
    @given(policies, arrivals())
    def compare(policy: Policy, times: list[int]) -> None:
        until = (times[-1] if times else 0) + 45
        assert saves_of_the_plan(policy, times, until) == saves_of_the_oracle(policy, times, until)

    compare()


def test_a_number_of_events_is_a_number_of_looks() -> None:
    plan = every(events=1000).begin(7.0)
    assert (plan.wake_count, plan.wake_time) == (1000, math.inf)
    assert plan.look(999, position(999), 8.0) is None
    assert plan.wake_count == 1000
    due = plan.look(1000, position(1000), 8.0)
    assert due is not None
    plan.saved(1000, 8.0)
    assert plan.look(1200, position(1200), 9.0) is None
    assert (plan.wake_count, plan.wake_time) == (2000, math.inf)


def test_a_look_without_new_events_leaves_the_number_of_events_as_it_is() -> None:
    plan = every(events=1000, seconds=10).begin(0.0)
    assert plan.look(0, None, 1.0) is None
    assert (plan.wake_count, plan.wake_time) == (1000, 10.0)
    plan.saved(300, 2.0)
    assert plan.look(300, position(300), 2.0) is None
    assert (plan.wake_count, plan.wake_time) == (1300, 12.0)


def test_a_replay_window_is_looked_at_once_for_a_group_of_events() -> None:
    plan = trailing(events=640, seconds=640, check_every=320).begin(0.0)
    assert (plan.wake_count, plan.wake_time) == (1, math.inf), "the first event begins a group"
    for count, now, wake_count, wake_time in (
        (1, 5.0, 10, 15.0),
        (4, 6.0, 10, 15.0),
        (10, 7.0, 20, 17.0),  # full by events
        (12, 17.0, 22, 27.0),  # full by time
        (12, 27.0, 13, 640.0),  # nothing has come: the next event begins the next group
    ):
        assert plan.look(count, position(count), now) is None
        assert (plan.wake_count, plan.wake_time) == (wake_count, wake_time)


def test_a_group_of_one_event_ends_with_it_and_needs_no_timer() -> None:
    for events, count, bounds in ((64, 1, (2, 640.0)), (128, 2, (4, 15.0))):
        plan = trailing(events=events, seconds=640, check_every=320).begin(0.0)
        assert plan.look(count, position(count), 5.0) is None
        assert (plan.wake_count, plan.wake_time) == bounds


def test_the_age_of_events_is_checked_on_a_grid_from_the_start_of_the_session() -> None:
    plan = trailing(events=1000, seconds=30, check_every=10).begin(7.0)
    for now in (8.0, 36.9):
        assert plan.look(1, position(1), now) is None
    due = plan.look(1, position(1), 37.0)
    assert due is not None
    assert due.count == 1


def test_the_first_event_after_an_idle_time_is_saved_at_once() -> None:
    assert saves_of_the_plan(every(events=1000, seconds=10), [300, 301, 302], 400) == [
        (300, 1),
        (310, 3),
    ]


def test_time_goes_by_without_a_wake_up_while_nothing_is_finished() -> None:
    plan = every(seconds=10).begin(0.0)
    assert plan.wake_time == 10.0
    assert plan.look(0, None, 10.0) is None
    assert (plan.wake_count, plan.wake_time) == (1, math.inf)


def test_what_was_finished_during_a_write_is_counted_from_that_write() -> None:
    plan = every(events=10).begin(0.0)
    assert plan.look(10, position(10), 1.0)
    assert plan.wake_count == 20
    plan.saved(10, 2.0)
    assert plan.look(18, position(18), 2.0) is None
    assert plan.wake_count == 20


def test_what_is_due_moves_on_until_it_is_saved() -> None:
    plan = any_of(every(events=10), trailing(events=10, seconds=60)).begin(0.0)
    for count in (10, 11, 25):
        due = plan.look(count, position(count), 1.0)
        assert due is not None
        assert (due.count, due.position) == (count, position(count))


def test_a_save_that_nobody_asked_for_counts_as_well() -> None:
    for policy in (every(events=10), trailing(events=10, seconds=60), all_of(every(events=10))):
        plan = policy.begin(0.0)
        assert plan.look(9, position(9), 1.0) is None
        plan.saved(12, 1.0)
        assert plan.look(12, position(12), 1.0) is None
        assert plan.look(12, position(12), 95.0) is None
        assert plan.look(21, position(21), 95.0) is None
        assert plan.look(22, position(22), 95.0)


POLICIES = [
    (every(events=5), "every(events=5)"),
    (every(seconds=2.5), "every(seconds=2.5)"),
    (every(events=5, seconds=2), "every(events=5, seconds=2)"),
    (trailing(events=9, seconds=4), "trailing(events=9, seconds=4, check_every=2.0)"),
    (any_of(every(events=1), every(seconds=1)), "any_of(every(events=1), every(seconds=1))"),
    (all_of(any_of(every(events=1))), "all_of(any_of(every(events=1)))"),
    (all_of(every(events=1), every(seconds=1)), "all_of(every(events=1), every(seconds=1))"),
]


@pytest.mark.parametrize(("policy", "text"), POLICIES, ids=[text for _, text in POLICIES])
def test_a_policy_is_a_value_that_is_spelled_as_it_was_made(policy: Policy, text: str) -> None:
    assert repr(policy) == text
    again = eval(text, {"every": every, "trailing": trailing, "any_of": any_of, "all_of": all_of})
    assert again == policy == pickle.loads(pickle.dumps(policy))
    assert len({again, policy}) == 1
    with pytest.raises((AttributeError, TypeError)):
        policy.events = 6  # type: ignore[attr-defined]


@pytest.mark.parametrize("events", [0, -1, 2.0, True, "5", math.nan])
def test_what_is_no_number_of_events_is_refused(events: Any) -> None:
    said = f"events is {events!r}; expected a whole number, 1 or more"
    for make in (every, trailing):
        with pytest.raises(ConfigurationError) as failure:
            make(events=events, seconds=10)
        assert str(failure.value) == said


@pytest.mark.parametrize("seconds", [0, -1.0, 0.0009, 1e10, math.inf, math.nan, True, "5s"])
def test_what_is_no_time_is_refused(seconds: Any) -> None:
    said = f" is {seconds!r}; expected seconds, from 0.001 to 1e+09"
    with pytest.raises(ConfigurationError, match="seconds is") as failure:
        every(seconds=seconds)
    assert str(failure.value) == f"seconds{said}"
    with pytest.raises(ConfigurationError) as failure:
        trailing(events=5, seconds=seconds)
    assert str(failure.value) == f"seconds{said}"
    with pytest.raises(ConfigurationError) as failure:
        trailing(events=5, seconds=1e9, check_every=seconds)
    assert str(failure.value) == f"check_every{said}"


def test_the_shortest_and_the_longest_time_are_taken() -> None:
    for seconds in (0.001, 1e9):
        assert repr(every(seconds=seconds)) == f"every(seconds={seconds!r})"


def test_a_window_is_checked_twice_in_its_time_where_nothing_else_is_said() -> None:
    assert trailing(events=9, seconds=4) == trailing(events=9, seconds=4, check_every=2)
    assert trailing(events=9, seconds=0.001) == trailing(events=9, seconds=0.001, check_every=0.001)


def test_a_window_is_checked_at_least_once_in_its_time() -> None:
    assert trailing(events=5, seconds=10, check_every=10)
    with pytest.raises(ConfigurationError) as failure:
        trailing(events=5, seconds=10, check_every=10.5)
    assert str(failure.value) == "check_every is 10.5; expected at most seconds, which is 10"


def test_a_policy_of_nothing_is_refused() -> None:
    for make, said in (
        (every, "every() needs events=, seconds= or both"),
        (any_of, "any_of() needs one policy or more"),
        (all_of, "all_of() needs one policy or more"),
    ):
        with pytest.raises(ConfigurationError) as failure:
            make()
        assert str(failure.value) == said


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(ConfigurationError) as failure:
        all_of(every(events=5), 5)  # type: ignore[arg-type]
    assert str(failure.value) == "a policy of all_of is 5; expected every(...) or the like"


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        ({}, trailing(events=2000, seconds=300, check_every=15)),
        (
            {"frequency": "1s", "countThreshold": 1, "timeThreshold": "1 second"},
            trailing(events=1, seconds=1, check_every=1),
        ),
        (
            {"frequency": timedelta(seconds=60), "timeThreshold": "1h"},
            trailing(events=2000, seconds=3600, check_every=60),
        ),
        ({"frequency": "5000ms"}, trailing(events=2000, seconds=300, check_every=5)),
        ({"timeThreshold": "60m"}, trailing(events=2000, seconds=3600, check_every=15)),
        (
            {"countThreshold": None, "frequency": ""},
            trailing(events=2000, seconds=300, check_every=15),
        ),
    ],
)
def test_settings_of_iothub_react_mean_a_replay_window(settings: Any, policy: Policy) -> None:
    assert Policy.from_settings(settings) == policy


FREQUENCY = "expected a duration with its unit, such as 30s, 0.5m or PT30S, from 1s to 60s"
TIME = "expected a duration with its unit, such as 30s, 0.5m or PT30S, from 1s to 3600s"
COUNT = "expected a whole number, 1 or more"
KNOWN = "frequency, countThreshold, timeThreshold"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"frequency": "999ms"}, f"frequency is '999ms'; {FREQUENCY}"),
        ({"frequency": "61s"}, f"frequency is '61s'; {FREQUENCY}"),
        ({"frequency": "90s"}, f"frequency is '90s'; {FREQUENCY}"),
        ({"frequency": 15}, f"frequency is 15; {FREQUENCY}"),
        ({"frequency": ["15s"]}, f"frequency is of type list; {FREQUENCY}"),
        ({"frequency": timedelta(0)}, f"frequency is of type timedelta; {FREQUENCY}"),
        ({"timeThreshold": "0s"}, f"timeThreshold is '0s'; {TIME}"),
        ({"timeThreshold": "61m"}, f"timeThreshold is '61m'; {TIME}"),
        ({"timeThreshold": 300.0}, f"timeThreshold is 300.0; {TIME}"),
        ({"countThreshold": 0}, f"countThreshold is 0; {COUNT}"),
        ({"countThreshold": "2000"}, f"countThreshold is of type str; {COUNT}"),
        ({"countThreshold": 2000.0}, f"countThreshold is of type float; {COUNT}"),
        ({"countThreshold": True}, f"countThreshold is of type bool; {COUNT}"),
        (
            {"frequency": "20s", "timeThreshold": "10s"},
            "frequency is 20s; expected at most timeThreshold, which is 10s",
        ),
        (
            {"timeThreshold": "10s"},
            "frequency is 15s, its default; expected at most timeThreshold, which is 10s",
        ),
        (
            {"countTreshold": 5},
            "countTreshold is not a setting; expected one of countThreshold, frequency, "
            "timeThreshold",
        ),
        ({"storage": {}}, f"storage is not a setting; expected one of {KNOWN}"),
        ([], f"the table of settings is of type list; expected one with {KNOWN}"),
        (None, f"the table of settings is of type NoneType; expected one with {KNOWN}"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        Policy.from_settings(settings)
    assert str(failure.value) == said
