"""What a handler was given and finished, against a model that remembers each event."""

import math
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.processing.watermark import InFlightEvent, Position, Row, Watermark


def at(number: int) -> Position:
    return Position(number, f"o{number}")


class Model:
    """Every event that was given, once for each time, with what became of it."""

    def __init__(self) -> None:
        self.watermark = Watermark()
        self.given: list[list[Any]] = []
        self.last: list[int] = []
        self.apart: list[tuple[InFlightEvent, list[Any]]] = []
        self.reached = -1

    def begin(self, numbers: list[int]) -> None:
        falls = [i for i in range(1, len(numbers)) if numbers[i] <= numbers[i - 1]]
        edges = [0, *falls, len(numbers)]
        parts = [numbers[a:b] for a, b in pairwise(edges)]
        rows = [Row(part, at(part[-1])) for part in parts]
        self.watermark.begin(rows)
        self.last = numbers
        self.given += [[number, "open"] for number in numbers]

    def finish(self) -> None:
        self.watermark.finish()
        for event in self.given:
            event[1] = "done" if event[1] == "open" else event[1]

    def finish_until(self, number: int) -> None:
        self.watermark.finish(at(number))
        for event in self.given:
            if event[0] <= number and event[1] == "open":
                event[1] = "done"

    def take_out(self, place: int) -> None:
        place %= len(self.last)
        number = self.last[place]
        previous = at(self.last[place - 1]) if place else None
        tracked = InFlightEvent(self.watermark, at(number))
        is_taken = self.watermark.take_out(tracked, previous)
        batch = self.given[-len(self.last) :]
        event = next((e for e in batch if e[0] == number and e[1] == "open"), None)
        # Each time that it came again it may be left behind once more.
        assert not is_taken or event is not None
        if not is_taken or event is None:
            assert event is None or self.last.count(number) > 1
            return
        event[1] = "apart"
        self.apart.append((tracked, event))

    def settle(self, which: int, fails: bool) -> None:
        if self.apart:
            tracked, event = self.apart.pop(which % len(self.apart))
            event[1] = "failed" if fails else "done"
            (tracked.failed if fails else tracked.done)()

    def check(self) -> None:
        position = self.watermark.position
        reached = -1 if position is None else position.sequence_number
        assert reached >= self.reached
        self.reached = reached
        # Of an event that came twice one may be finished: it was processed.
        done = {number for number, state in self.given if state == "done"}
        assert not {n for n, state in self.given if state != "done" and n <= reached} - done
        assert position is None or position == at(reached)
        assert self.watermark.pending == sum(tracked.size for tracked in self.watermark.unpassed)
        assert self.watermark.pending + self.watermark.count == len(self.given)


@st.composite
def streams(draw: Any) -> list[list[int]]:
    """Batches of a partition that has gaps; now and then events come again."""
    steps_up = draw(st.lists(st.sampled_from([1, 1, 1, 3]), min_size=40, max_size=40))
    events, at_event, found = list(accumulate(steps_up)), 0, []
    for _ in range(draw(st.integers(1, 6))):
        batch: list[int] = []
        for _ in range(draw(st.integers(1, 6))):
            if draw(st.integers(0, 9)) == 0:
                at_event = max(at_event - draw(st.integers(1, 5)), 0)
            batch.append(events[at_event])
            at_event += 1
        found.append(batch)
    return found


def steps(model: Model, data: Any, batch: list[int]) -> Iterator[None]:
    model.begin(batch)
    yield
    for _ in range(data.draw(st.integers(0, 5))):
        what = data.draw(st.sampled_from(["take", "take", "until", "settle", "fail"]))
        if what == "take":
            model.take_out(data.draw(st.integers(0, 9)))
        elif what == "until":
            model.finish_until(data.draw(st.integers(0, 40)))
        else:
            model.settle(data.draw(st.integers(0, 9)), what == "fail")
        yield
    if data.draw(st.booleans()):
        model.finish()
        yield


def is_rising(batches: list[list[int]]) -> bool:
    numbers = [number for batch in batches for number in batch]
    return all(a < b for a, b in pairwise(numbers))


@given(streams(), st.data())
def test_the_position_passes_nothing_unfinished_and_never_goes_back(
    batches: list[list[int]], data: Any
) -> None:
    model = Model()
    for batch in batches:
        for _ in steps(model, data, batch):
            model.check()


@given(streams().filter(is_rising), st.data())
def test_without_repeats_nothing_is_held_back_that_is_finished(
    batches: list[list[int]], data: Any
) -> None:
    model = Model()
    for batch in batches:
        for _ in steps(model, data, batch):
            model.check()
    while model.apart:
        model.settle(0, fails=False)
    model.finish()
    model.check()
    if all(state == "done" for _, state in model.given):
        assert model.watermark.position == at(batches[-1][-1])
        assert model.watermark.pending == 0


def test_an_event_is_taken_out_once() -> None:
    model = Model()
    model.begin([3, 4, 5])
    model.take_out(1)
    model.take_out(1)
    assert len(model.apart) == 1
    model.finish()
    assert model.watermark.position == at(3)
    model.settle(0, fails=False)
    assert model.watermark.position == at(5)


def taken_out(watermark: Watermark, number: int, previous: int | None) -> InFlightEvent | None:
    """What finishes an event of the last batch; None if it was not taken out."""
    tracked = InFlightEvent(watermark, at(number))
    is_taken = watermark.take_out(tracked, None if previous is None else at(previous))
    return tracked if is_taken else None


def test_of_an_event_that_came_twice_in_a_batch_the_one_behind_its_neighbour_is_taken_out() -> None:
    watermark = Watermark()
    watermark.begin([Row([5, 6, 7], at(7)), Row([4, 6], at(6))])
    tracked = taken_out(watermark, 6, 4)
    assert tracked is not None
    watermark.finish()
    assert watermark.pending == 1, "all but the last event"
    tracked.done()
    assert watermark.pending == 0


def test_an_event_of_an_earlier_batch_is_not_taken_out() -> None:
    watermark = Watermark()
    for numbers in ([1, 2], [3, 4]):
        watermark.begin([Row(numbers, at(numbers[-1]))])
    assert taken_out(watermark, 2, 1) is None
    assert taken_out(watermark, 3, None) is not None


def test_nothing_is_left_of_a_single_event_that_was_taken_out() -> None:
    watermark = Watermark()
    watermark.begin([Row([3], at(3))])
    tracked = taken_out(watermark, 3, None)
    assert tracked is not None
    tracked.done()
    assert (watermark.position, watermark.first_unpassed) == (at(3), None)


def test_finishing_up_to_an_earlier_position_finishes_nothing() -> None:
    watermark = Watermark()
    watermark.begin([Row([5, 6], at(6))])
    watermark.finish(at(3))
    assert (watermark.position, watermark.pending, len(watermark.unpassed)) == (None, 2, 1)


def test_the_newest_event_of_all_batches_is_known_also_when_events_come_again() -> None:
    watermark = Watermark()
    assert watermark.newest == -math.inf
    for rows in ([Row([5, 6], at(6)), Row([4], at(4))], [Row([5], at(5))]):
        watermark.begin(rows)
        assert watermark.newest == 6
