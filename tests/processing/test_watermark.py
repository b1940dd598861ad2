"""The position follows the finished prefix, in whatever order events finish and arrive."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.processing.watermark import InFlightEvent, Latest, Position, Watermark


def at(sequence_number: int) -> Position:
    return Position(sequence_number, f"o{sequence_number}")


@dataclass
class Oracle:
    """The same rules, looked up in a list of all events each time."""

    arrived: list[int] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        unfinished = [at for at in range(len(self.arrived)) if at not in self.done]
        return unfinished[0] if unfinished else len(self.arrived)

    @property
    def position(self) -> int | None:
        return max(self.arrived[: self.count], default=None)

    @property
    def is_settled(self) -> bool:
        return self.count == len(self.arrived) or self.count in self.failed


# An event arrives with a sequence number, or one of those that have arrived is done or fails.
arrivals = st.tuples(st.just("track"), st.integers(0, 12))
endings = st.tuples(st.sampled_from(["done", "done", "failed"]), st.integers(0, 30))
stories = st.lists(st.one_of(arrivals, endings), max_size=60)


@given(stories)
def test_it_is_what_a_look_at_all_events_gives(story: Sequence[tuple[str, int]]) -> None:
    watermark, oracle = Watermark(), Oracle()
    tracked_events: list[InFlightEvent] = []
    for what, number in story:
        if what == "track":
            tracked_events.append(watermark.track(at(number)))
            oracle.arrived.append(number)
        elif tracked_events:
            which = number % len(tracked_events)
            getattr(tracked_events[which], what)()
            (oracle.done if what == "done" else oracle.failed).add(which)
        assert watermark.count == oracle.count
        assert watermark.pending == len(oracle.arrived) - oracle.count
        expected = oracle.position
        assert watermark.position == (None if expected is None else at(expected))
        assert watermark.is_settled == oracle.is_settled


@given(stories)
def test_it_never_goes_back_and_never_passes_an_unfinished_event(
    story: Sequence[tuple[str, int]],
) -> None:
    watermark, reached, newest = Watermark(), -1, -1
    tracked_events: list[InFlightEvent] = []
    new: list[tuple[int, InFlightEvent]] = []
    for what, number in story:
        if what == "track":
            tracked_events.append(watermark.track(at(number)))
            if number > newest:
                new.append((number, tracked_events[-1]))
                newest = number
        elif tracked_events:
            getattr(tracked_events[number % len(tracked_events)], what)()
        if watermark.position is not None:
            assert watermark.position.sequence_number >= reached
            reached = watermark.position.sequence_number
        assert all(tracked.is_done or reached < number for number, tracked in new)


@given(st.permutations(range(40)))
def test_any_order_of_finishing_ends_at_the_last_event(order: Sequence[int]) -> None:
    watermark = Watermark()
    tracked_events = [watermark.track(at(number)) for number in range(40)]
    finished: set[int] = set()
    for which in order:
        tracked_events[which].done()
        finished.add(which)
        prefix = next(n for n in range(41) if n not in finished)
        assert watermark.position == (at(prefix - 1) if prefix else None)
    assert watermark.position == at(39)
    assert not watermark.unpassed


def test_events_that_come_again_after_a_new_link_move_nothing_back() -> None:
    watermark = Watermark()
    for number in range(1, 8):
        watermark.track(at(number)).done()
    again = [watermark.track(at(number)) for number in (4, 5, 6, 7)]
    assert watermark.position == at(7)
    watermark.track(at(8)).done()
    assert watermark.position == at(7), "an event that came again is not finished"
    for tracked in again:
        tracked.done()
    assert watermark.position == at(8)


def test_what_comes_again_before_it_was_finished_has_to_be_finished_twice() -> None:
    watermark = Watermark()
    first, again = watermark.track(at(4)), watermark.track(at(4))
    first.done()
    assert (watermark.count, watermark.pending) == (1, 1)
    again.done()
    assert (watermark.count, watermark.pending) == (2, 0)


def test_a_started_event_is_neither_finished_nor_failed() -> None:
    event = Watermark().track(at(0))
    assert (event.is_done, event.has_failed, event.size) == (False, False, 1)


def test_done_twice_counts_once() -> None:
    watermark = Watermark()
    tracked = watermark.track(at(0))
    tracked.done()
    tracked.done()
    assert watermark.count == 1


def test_a_failed_event_holds_the_position_until_it_is_done_after_all() -> None:
    watermark = Watermark()
    failing, behind = watermark.track(at(0)), watermark.track(at(1))
    assert not watermark.is_settled
    failing.failed()
    behind.done()
    assert watermark.is_settled
    assert watermark.position is None
    failing.done()
    assert watermark.position == at(1)


def test_events_that_finish_together_are_counted_one_by_one() -> None:
    watermark = Watermark(4)
    several = watermark.track(at(2), 3)
    assert (watermark.pending, watermark.is_full) == (3, False)
    watermark.track(at(3))
    assert (watermark.pending, watermark.is_full) == (4, True)
    several.done()
    assert (watermark.position, watermark.count, watermark.pending) == (at(2), 3, 1)


def test_the_last_requested_position_stands_for_all_requests() -> None:
    latest = Latest()
    assert (latest.count, latest.position) == (0, None)
    for number in (7, 9):
        latest.newest = next(latest.counter), number, f"o{number}"
    assert (latest.count, latest.position) == (2, at(9))


def test_a_position_that_was_written_at_once_stands_for_its_request_only() -> None:
    latest = Latest()
    latest.newest = next(latest.counter), 7, "o7"
    latest.at_once = 1, at(3)
    assert (latest.count, latest.position) == (1, at(3))
    latest.newest = next(latest.counter), 9, "o9"
    assert (latest.count, latest.position) == (2, at(9))


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_it_is_full_at_so_many_events_that_are_not_passed(limit: int) -> None:
    watermark = Watermark(limit)
    tracked_events = [watermark.track(at(number)) for number in range(limit)]
    assert watermark.is_full
    for tracked in tracked_events[1:]:
        tracked.done()
    assert watermark.is_full, "what is finished behind an unfinished event is not passed"
    tracked_events[0].done()
    assert not watermark.is_full


def test_without_a_limit_it_is_never_full() -> None:
    watermark = Watermark()
    for number in range(1000):
        watermark.track(at(number))
    assert not watermark.is_full


def test_memory_holds_what_is_not_passed_and_nothing_else() -> None:
    watermark = Watermark()
    window = [watermark.track(at(number)) for number in range(1000)]
    tracemalloc.start()
    try:
        for number in range(1000, 40_000):
            window.append(watermark.track(at(number)))
            window.pop(0).done()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
