"""Several ranges into one inbox, without a hub: bounds, order, errors, and stopping."""

import threading
from types import SimpleNamespace

import pytest

from eventhub_checkpoints.receive import Address, OffsetRange, ReadSettings, batches
from eventhub_checkpoints.receive.address import STOP_CHECK, Stream
from eventhub_checkpoints.receive.batches import (
    ParallelReader,
    StoppableStream,
    StoppedError,
)
from eventhub_checkpoints.receive.columns import Columns, TextMaps
from waiting import LIMIT, eventually

TENS = ReadSettings(rows_per_batch=10)


class Numbers(Stream):
    """Ten events at a time, as fast as they are asked for."""

    def __init__(self, address: "OfNumbers", start: int) -> None:
        self.address = address
        self.at = start

    def next(self, timeout: float) -> Columns | None:
        self.address.note_asked()
        numbers = [*range(self.at, self.at + 10)]
        self.at += 10
        nothing = [None] * 10
        empty = [0] * 11
        return Columns(
            numbers=numbers,
            bodies=[b""] * 10,
            offsets=[str(number) for number in numbers],
            enqueued=nothing,
            publishers=nothing,
            partition_keys=nothing,
            properties=TextMaps(empty),
            systems=TextMaps([*empty]),
        )

    def close(self) -> None:
        self.address.open -= 1


class Silent(Stream):
    """Waits on the test's clock, and stops its reader at a time of it."""

    def __init__(self, stopped: threading.Event, stop_at: float) -> None:
        self.now = 0.0
        self.asked_at: list[float] = []
        self._stopped, self._stop_at = stopped, stop_at

    def monotonic(self) -> float:
        return self.now

    def next(self, timeout: float) -> None:
        self.asked_at.append(self.now)
        self.now = round(self.now + timeout, 9)
        if self.now >= self._stop_at:
            self._stopped.set()

    def close(self) -> None:
        pass


class OfNumbers(Address):
    """As many events as anybody wants; partition 13 breaks at its second stream's worth."""

    fully_qualified_namespace, eventhub_name, consumer_group = "ns", "orders", "$Default"

    def __init__(self) -> None:
        self.asked = self.taken = self.ahead = self.open = self.most = 0
        self._lock = threading.Lock()

    def note_asked(self) -> None:
        with self._lock:
            self.asked += 1
            self.ahead = max(self.ahead, self.asked - self.taken)

    def open_queries(self):
        raise NotImplementedError

    def ask_first(self, partition_id, start, inclusive, timeout):
        raise NotImplementedError

    def open_stream(self, partition_id, start, until, settings):
        if partition_id == "13":
            raise ValueError("partition 13 breaks")
        self.open += 1
        self.most = max(self.most, self.open)
        return Numbers(self, start)


def ranges(count, rows, first=0):
    return [OffsetRange(str(number), 0, rows) for number in range(first, first + count)]


def drained(reading):
    return [*iter(reading.next, None)]


@pytest.mark.parametrize(("count", "at_once"), [(1, 4), (5, 1), (5, 2), (3, 8)])
def test_all_ranges_are_read_and_no_more_at_once_than_allowed(count, at_once):
    address = OfNumbers()
    read = drained(ParallelReader(address, ranges(count, 100), TENS, at_once))
    found: dict[str, list[int]] = {}
    for batch in read:
        found.setdefault(batch["partition"][0].as_py(), []).extend(
            batch["sequenceNumber"].to_pylist()
        )
    assert found == {str(number): [*range(100)] for number in range(count)}
    assert address.most <= at_once
    assert address.open == 0


def test_nothing_to_read_ends_at_once():
    reading = ParallelReader(OfNumbers(), [], TENS, 4)
    assert reading.is_ready
    assert reading.next() is None


def test_who_does_not_read_is_waited_for():
    """At most `at_once` batches wait in the inbox, and each thread has one more in its hands."""
    address = OfNumbers()
    reading = ParallelReader(address, ranges(3, 1000), TENS, 3)
    for taken in range(1, 301):
        eventually(lambda: address.ahead == 3 + 3)
        address.taken = taken
        assert reading.next() is not None
    assert reading.next() is None
    assert address.ahead == 3 + 3
    assert address.open == 0


def test_the_callback_is_called_whenever_a_batch_is_ready():
    news = threading.Semaphore(0)
    reading = ParallelReader(OfNumbers(), ranges(2, 50), TENS, 2, on_news=news.release)
    batches = []
    while news.acquire(timeout=LIMIT):
        if not reading.is_ready:
            continue
        batch = reading.next()
        if batch is None:
            break
        batches.append(batch)
    assert len(batches) == 10


def test_an_error_comes_once_after_what_was_read_and_ends_all():
    address = OfNumbers()
    wanted = [*ranges(1, 50), OffsetRange("13", 0, 50), *ranges(3, 50, first=20)]
    reading = ParallelReader(address, wanted, TENS, 1)
    assert [reading.next().num_rows for _ in range(5)] == [10] * 5
    with pytest.raises(ValueError, match="13 breaks"):
        reading.next()
    assert reading.next() is None
    assert address.open == 0


def test_stopping_throws_away_what_nobody_took_and_ends_a_wait():
    address = OfNumbers()
    reading = ParallelReader(address, ranges(4, 1000), TENS, 2)
    eventually(lambda: reading.is_ready)
    reading.stop()
    reading.join(LIMIT)
    assert reading.next() is None
    assert address.open == 0


def test_a_silent_stream_looks_often_whether_anybody_reads_and_keeps_its_time(monkeypatch):
    stopped = threading.Event()
    silent = Silent(stopped, stop_at=10.0)
    monkeypatch.setattr(batches, "time", SimpleNamespace(monotonic=silent.monotonic))
    stream = StoppableStream(silent, stopped)
    assert stream.next(3.5 * STOP_CHECK) is None
    assert silent.asked_at == [0.0, 0.1, 0.2, 0.3]
    assert silent.now == 0.35
    with pytest.raises(StoppedError):
        stream.next(60)
    assert 10.0 <= silent.now <= 10.0 + STOP_CHECK


class Ending(Stream):
    """Delivers nothing: first it skips a gap, and then it reports that it is over."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def reached(self) -> int:
        return 7

    @property
    def is_over(self) -> bool:
        return self.asked > 1

    def next(self, timeout: float) -> Columns | None:
        self.asked += 1
        return None if self.is_over else Columns()

    def close(self) -> None:
        pass


def test_a_position_without_events_is_passed_on_at_once():
    ending = Ending()
    stream = StoppableStream(ending, threading.Event())
    assert (len(stream.next(60)), stream.reached, stream.is_over) == (0, 7, False)
    assert (stream.next(60), stream.is_over, ending.asked) == (None, True, 2)


def test_a_stopped_reader_opens_no_stream():
    address = OfNumbers()
    reading = ParallelReader(address, ranges(1, 20), TENS, 1)
    drained(reading)
    reading.stop()
    with pytest.raises(StoppedError):
        reading._open_stream("0", 0, 10, TENS)
