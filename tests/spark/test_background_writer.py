import logging
import threading

import pytest

from eventhub_checkpoints import (
    MemoryCheckpointStore,
    Scope,
    StoreAccessError,
    StoreUnavailableError,
)
from eventhub_checkpoints.spark.publisher import BackgroundWriter, ForwardWriter
from eventhub_checkpoints.spark.query_follower import LastEvent
from waiting import LIMIT, eventually

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


class Writer:
    """Notes what is written; holds or fails as a test says."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.written = []
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()

    def __call__(self, partition, event):
        self.begun.set()
        assert self.free.wait(LIMIT)
        if self.failures:
            raise self.failures.pop(0)
        self.written.append((partition, event.sequence_number))


@pytest.fixture
def writer_of():
    """Outboxes that are closed after the test."""
    made = []

    def make(write):
        made.append(BackgroundWriter(write, SCOPE))
        return made[-1]

    yield make
    for background in made:
        background.close(LIMIT)


def events(**by_partition):
    return {one.removeprefix("p"): LastEvent(number) for one, number in by_partition.items()}


def test_of_what_waits_for_a_partition_the_newest_is_written(writer_of):
    writer = Writer()
    writer.free.clear()
    background = writer_of(writer)
    background.put(events(p0=1))
    assert writer.begun.wait(LIMIT)
    for number in (2, 9, 3):
        background.put(events(p0=number, p1=number))
    writer.free.set()
    background.flush(LIMIT)
    assert sorted(writer.written) == [("0", 1), ("0", 9), ("1", 9)]
    assert background.waiting == {}


def test_handing_over_does_not_wait_for_a_slow_store(writer_of):
    writer = Writer()
    writer.free.clear()
    background = writer_of(writer)
    for number in range(1000):
        background.put(events(p0=number))
    # Nothing is stored yet: the store's first write is still under way.
    assert writer.written == []
    assert background.waiting == events(p0=999)
    writer.free.set()


def test_an_offset_is_kept_where_the_same_event_comes_without(writer_of):
    held = []
    background = writer_of(lambda _, event: held.append(event))
    with background._changed:
        background.put({"0": LastEvent(5, "500")})
        background.put({"0": LastEvent(5)})
    background.flush(LIMIT)
    assert held == [LastEvent(5, "500")]


def test_what_failed_is_tried_again(writer_of, caplog):
    writer = Writer(*[StoreUnavailableError("the store is away")] * 3)
    background = writer_of(writer)
    background.put(events(p0=1))
    background.flush(LIMIT)
    assert writer.written == [("0", 1)]
    assert background.failures == 3


def test_a_partition_that_fails_does_not_hold_the_others_up(writer_of):
    written = []

    def write(partition, event):
        if partition == "0":
            raise StoreUnavailableError("this one does not go")
        written.append(partition)

    background = writer_of(write)
    background.put(events(p0=1, p1=1, p2=1))
    eventually(lambda: written == ["1", "2"])
    with pytest.raises(StoreUnavailableError, match="partition 0, are not"):
        background.flush(0.01)


def test_what_has_not_moved_is_not_written_again(writer_of):
    writer = Writer()
    background = writer_of(writer)
    for _ in range(3):
        background.put(events(p0=1, p1=2))
        background.flush(LIMIT)
    assert sorted(writer.written) == [("0", 1), ("1", 2)]


def test_an_outage_is_logged_once(writer_of, caplog):
    writer = Writer(*[ConnectionError("nobody there")] * 3)
    background = writer_of(writer)
    with caplog.at_level(logging.WARNING):
        background.put(events(p0=1))
        eventually(lambda: not background.waiting)
    assert [record.message for record in caplog.records] == [
        f"checkpoints of {SCOPE} wait for their store: nobody there"
    ]


def test_a_flush_does_not_wait_for_the_pause_to_end(writer_of, monkeypatch):
    monkeypatch.setattr("eventhub_checkpoints.spark.publisher.backoff", lambda *_: 1000.0)
    writer = Writer(StoreUnavailableError("the store is away"))
    background = writer_of(writer)
    background.put(events(p0=1))
    eventually(lambda: background.failures)
    background.flush(LIMIT)
    assert writer.written == [("0", 1)]


def test_a_flush_that_is_too_late_names_the_partitions(writer_of):
    cause = StoreUnavailableError("the store is away")
    background = writer_of(Writer(*[cause] * 1000))
    background.put(events(p10=1, p2=7))
    eventually(lambda: background.failures >= 2)
    late = r"Orders/\$Default, partition 2, 10, are not"
    with pytest.raises(StoreUnavailableError, match=late) as told:
        background.flush(0.01)
    assert told.value.__cause__ is cause
    assert background.waiting == events(p10=1, p2=7)


def test_a_flush_raises_at_once_what_waiting_does_not_heal(writer_of):
    background = writer_of(Writer(*[StoreAccessError("no right to write")] * 1000))
    background.put(events(p0=1))
    # What was waited for in vain is another error.
    with pytest.raises(StoreAccessError, match="no right"):
        background.flush(LIMIT)


def test_the_end_waits_for_the_write_that_is_under_way_and_begins_no_other(writer_of):
    writer = Writer()
    writer.free.clear()
    background = writer_of(writer)
    background.put(events(p0=1))
    assert writer.begun.wait(LIMIT)
    background.close(0)
    background.put(events(p0=2))
    writer.free.set()
    background.close(LIMIT)
    assert writer.written == [("0", 1)]
    assert background.waiting == events(p0=2)


def checkpoint(number, offset="old"):
    return {**SCOPE.as_dict(), "partition_id": "0", "offset": offset, "sequence_number": number}


def stored(store):
    return {
        row["partition_id"]: (row["sequence_number"], row["offset"])
        for row in store.list_checkpoints(*SCOPE)
    }


class Foreign:
    """A store of another maker: it writes whatever it is told, and counts nothing."""

    def __init__(self):
        self.rows = {}

    def list_checkpoints(self, fully_qualified_namespace, eventhub_name, consumer_group):
        return list(self.rows.values())

    def update_checkpoint(self, row):
        self.rows[row["partition_id"]] = dict(row)


@pytest.mark.parametrize("make", [MemoryCheckpointStore, Foreign])
def test_what_is_stored_does_not_go_back(make, caplog):
    store = make()
    store.update_checkpoint(checkpoint(100))
    writer = ForwardWriter(store, SCOPE)
    for number in (50, 60, 99):
        writer.write("0", LastEvent(number))
    assert stored(store) == {"0": (100, "old")}
    assert writer.counters["stale"] == 3
    [told] = [record.message for record in caplog.records]
    assert "checkpoint 50 of partition 0" in told
    assert "at 100. If the query was rewound" in told


def test_the_same_position_is_not_written_over():
    store = MemoryCheckpointStore()
    store.update_checkpoint(checkpoint(100))
    writer = ForwardWriter(store, SCOPE)
    writer.write("0", LastEvent(100))
    assert stored(store) == {"0": (100, "old")}
    assert not writer.counters


@pytest.mark.parametrize("on_stale", ["log", "raise"])
def test_a_writer_that_has_overtaken_is_noticed_and_listed(on_stale):
    mine = MemoryCheckpointStore(on_stale=on_stale)
    other = MemoryCheckpointStore(mine.rows)
    writer = ForwardWriter(mine, SCOPE)
    writer.write("0", LastEvent(10))
    other.update_checkpoint(checkpoint(100))
    writer.write("0", LastEvent(20))
    writer.write("0", LastEvent(30))
    assert stored(other) == {"0": (100, "old")}
    assert (writer.counters["published"], writer.counters["stale"]) == (1, 2)
    assert mine.counters["stale_checkpoints"] == 1
    writer.write("0", LastEvent(101, "new"))
    assert stored(other) == {"0": (101, "new")}


def test_the_store_is_listed_once():
    lists = []

    class Counting(Foreign):
        def list_checkpoints(self, *scope):
            lists.append(scope)
            return super().list_checkpoints(*scope)

    writer = ForwardWriter(Counting(), SCOPE)
    for number in range(5):
        writer.write("0", LastEvent(number))
        writer.write("1", LastEvent(number))
    assert lists == [tuple(SCOPE)]
    assert writer.stored == {"0": 4, "1": 4}


def test_the_first_event_of_a_partition_is_a_position():
    store = MemoryCheckpointStore()
    ForwardWriter(store, SCOPE).write("0", LastEvent(0))
    [(number, offset)] = stored(store).values()
    assert (number, int(offset), bool(offset)) == (0, 0, True)
