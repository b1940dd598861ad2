"""A partition read without an end, on a clock that the streams move."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData

from eventhub_checkpoints import DataLossError, HubUnavailableError
from eventhub_checkpoints.receive import HubAddress, PartitionProperties, ReadSettings, reader
from eventhub_checkpoints.receive.address import Portion, StoppedError
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.reader import TailReader

ADDRESS = HubAddress("ns", "orders", "$Default", "secret")
TICK, PATIENCE = 1.0, 60.0


def events(*numbers: int) -> Columns:
    made = []
    for number in numbers:
        event = EventData(b"event")
        event.raw_amqp_message.annotations = {b"x-opt-sequence-number": number}
        made.append(event)
    return columns_of(made)


class Hub:
    """Hub of one partition, and the streams from it.

    Attributes:
        scripts: numbers that each stream delivers, one list a call; then it is silent.
        opened: start of each stream.
        asked: moments at which the properties were asked for.
        portions: with which the streams were called.
        now: the time.
    """

    def __init__(self, *scripts: list[list[int]], first: int = 0, following: int = 100) -> None:
        self.scripts = list(scripts)
        self.opened: list[int] = []
        self.asked: list[float] = []
        self.portions: list[Any] = []
        self.now = 0.0
        self.held = PartitionProperties("0", first, following, "", datetime.now(UTC))

    def reader(self, start: int, *, fails: bool = True) -> TailReader:
        hub = self

        class Reader(TailReader):
            def _properties(self) -> PartitionProperties:
                hub.asked.append(hub.now)
                return hub.held

        settings = ReadSettings(receiver_timeout=PATIENCE, fail_on_data_loss=fails)
        made = Reader(ADDRESS, "0", start, settings, threading.Event())
        made._open_stream = self._open  # type: ignore[assignment]
        made.tick = TICK
        return made

    @contextmanager
    def _open(self, _partition: str, start: int, *_: object) -> Iterator[Any]:
        self.opened.append(start)
        script = self.scripts.pop(0) if self.scripts else []

        def next_(timeout: float) -> Columns | None:
            self.portions.append(stream.portion)
            if script:
                return events(*script.pop(0))
            self.now += timeout
            return None

        stream = SimpleNamespace(
            next=next_, reached=0, trouble="", is_away=False, is_over=False, portion=None
        )
        yield stream


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has a reader go by the time of its hub."""

    def use(hub: Hub) -> Hub:
        clock = SimpleNamespace(monotonic=lambda: hub.now)
        monkeypatch.setattr(reader, "time", clock)
        return hub

    return use


def taken(parts: Iterator[Columns], count: int) -> list[list[int]]:
    return [part.numbers for part in islice(parts, count)]


def test_a_part_without_rows_comes_after_each_tick(clock: Any) -> None:
    hub = clock(Hub([[0, 1], [2]]))
    assert taken(hub.reader(0).parts(), 5) == [[0, 1], [2], [], [], []]
    assert hub.now == 3 * TICK


def test_its_streams_are_told_how_much_to_return(clock: Any) -> None:
    hub = clock(Hub([[0]]))
    tail = hub.reader(0)
    parts = tail.parts()
    tail.portion = Portion(10, 5, frozenset())
    next(parts)
    tail.portion = Portion(7, 2, None)
    next(parts)
    assert hub.portions == [Portion(10, 5, frozenset()), Portion(7, 2, None)]


def test_a_hub_without_newer_events_is_asked_once_in_a_while_and_its_link_stays(
    clock: Any,
) -> None:
    hub = clock(Hub([[98, 99]]))
    assert taken(hub.reader(98).parts(), 200)[1:] == [[]] * 199
    assert hub.opened == [98]
    assert hub.asked == [PATIENCE + TICK, 2 * PATIENCE + TICK, 3 * PATIENCE + TICK]


def test_a_link_that_is_silent_although_there_are_events_is_opened_again(clock: Any) -> None:
    hub = clock(Hub([[0]], [[1, 2]]))
    numbers = [number for part in islice(hub.reader(0).parts(), 70) for number in part.numbers]
    assert numbers == [0, 1, 2]
    assert hub.opened == [0, 1]


def test_events_that_two_links_do_not_deliver_are_an_error(clock: Any) -> None:
    hub = clock(Hub([[0]]))
    with pytest.raises(HubUnavailableError, match="although it holds events up to 99"):
        taken(hub.reader(0).parts(), 1000)
    assert hub.opened == [0, 1]
    assert hub.now == 2 * PATIENCE + TICK


def test_events_that_expired_meanwhile_are_an_error(clock: Any) -> None:
    hub = clock(Hub([[0]], first=50))
    with pytest.raises(DataLossError, match="sequence number 1 has expired"):
        taken(hub.reader(0).parts(), 1000)


def test_events_that_expired_meanwhile_are_passed_over_with_a_warning(
    clock: Any, caplog: Any
) -> None:
    hub = clock(Hub([[0]], [[50, 51]], first=50))
    numbers = [n for p in islice(hub.reader(0, fails=False).parts(), 100) for n in p.numbers]
    assert numbers == [0, 50, 51]
    assert "49 events are lost" in caplog.text


def test_a_gap_after_which_events_have_expired_is_noticed(clock: Any) -> None:
    hub = clock(Hub([[0], [50]], first=50))
    with pytest.raises(DataLossError, match="sequence number 1 has expired"):
        taken(hub.reader(0).parts(), 3)


def test_a_hub_that_ends_before_the_position_is_data_loss(clock: Any) -> None:
    hub = clock(Hub(following=5))
    with pytest.raises(DataLossError, match="lies beyond the end"):
        taken(hub.reader(40).parts(), 1000)


def test_a_hub_that_was_created_again_is_read_from_its_first_event(clock: Any) -> None:
    hub = clock(Hub([], [[0, 1]], following=5))
    numbers = [n for p in islice(hub.reader(40, fails=False).parts(), 100) for n in p.numbers]
    assert numbers == [0, 1]


def test_the_wait_for_an_answer_ends_when_reading_is_stopped() -> None:
    stopped, answers = threading.Event(), threading.Event()
    stopped.set()
    with pytest.raises(StoppedError):
        reader.unless_stopped(stopped, answers.wait)
    answers.set()


def test_the_answer_is_returned_or_raised() -> None:
    assert reader.unless_stopped(threading.Event(), lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        reader.unless_stopped(threading.Event(), lambda: 1 // 0)
