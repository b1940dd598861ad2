"""Which events a member gets, in which batches, and what a commit covers."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from arrow_rows import last_of, numbers, take
from arrow_variants import ALL, PATHS, STORES
from eventhub_checkpoints import StaleCheckpointError
from eventhub_checkpoints.arrow import EventPosition
from eventhub_checkpoints.receive.amqp.decoder.rows import Rows
from eventhub_checkpoints.receive.amqp.events import ClientEvents
from eventhub_checkpoints.receive.batches import SCHEMA
from eventhub_checkpoints.sdk.receiver import READ_SIZE
from waiting import eventually

TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
NEVER = 3600.0
"""Seconds of `max_wait` for which no test waits."""


# What is read


@PATHS
def test_every_event_comes_once_and_in_the_order_of_its_partition(member, receive_path):
    reader = member(receive_path=receive_path).start()
    eventually(lambda: reader.count >= 210)
    assert {each: reader.numbers(each) for each in ALL} == ALL


def test_what_is_published_later_comes_as_well(member, hub):
    reader = member().start()
    for expected in (210, 217, 224, 231):
        eventually(lambda expected=expected: reader.count == expected)
        hub.publish("orders", "2", ["later"] * 7)
    assert reader.numbers("2")[:31] == [*range(31)]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (95, [range(95, 100)] * 3),
        (EventPosition.from_sequence_number(97), [range(98, 100)] * 3),
        ("latest", [range(0)] * 3),
        (TEN, [range(100)] * 3),
        ({"0": 98, "1": "latest"}, [range(98, 100), range(0), range(100)]),
        ({0: "earliest", 2: 7}, [range(100), range(100), range(7, 100)]),
    ],
)
def test_a_partition_without_a_checkpoint_begins_where_start_says(member, hub, start, found):
    hub.publish("orders", "2", ["event"] * 90)
    reader = member(start=start).start()
    expected = dict(zip("012", map(list, found), strict=True))
    eventually(lambda: reader.count == sum(map(len, found)) and reader.held == {*ALL})
    assert {each: reader.numbers(each) for each in ALL} == expected


def test_a_time_and_the_end_are_positions_too(member, hub):
    hub.recreate("orders")
    for hour in range(3):
        hub.publish("orders", "1", ["event"] * 4, enqueued_time=TEN + timedelta(hours=hour))
    reader = member(start=TEN + timedelta(minutes=30)).start()
    eventually(lambda: reader.numbers("1") == [*range(4, 12)])


def test_a_member_reads_from_the_end_of_what_there_was_when_it_began(member, hub, kept):
    reader = member(start="latest").start()
    eventually(lambda: reader.held == {*ALL})
    # A partition is open when its first event has come.
    seen = {each: [] for each in ALL}

    def has_come(partition):
        hub.publish("orders", partition, ["news"])
        seen[partition] = reader.numbers(partition)
        return seen[partition]

    for each in ALL:
        eventually(lambda each=each: has_come(each))
        assert min(seen[each]) >= len(ALL[each])


# Batches


@PATHS
def test_a_batch_is_complete_with_so_many_rows(member, hub, receive_path):
    reader = member(max_rows=30, max_wait=NEVER, receive_path=receive_path).start()
    eventually(lambda: len(reader.of("batch")) == 6)
    assert {len(row) for _, row in reader.of("batch")} == {30}
    hub.publish("orders", "2", ["event"] * 19)
    hub.publish("orders", "2", ["event"] * 31)
    eventually(lambda: len(reader.of("batch")) == 8)
    assert reader.numbers("2") == [*range(60)]
    assert {len(row) for _, row in reader.of("batch")} == {30}


def test_a_batch_of_one_row_is_possible(member):
    reader = member(max_rows=1).start()
    eventually(lambda: reader.count == 210)
    assert {each: reader.numbers(each) for each in ALL} == ALL
    assert len(reader.of("batch")) == 210


def test_a_batch_is_complete_with_so_many_bytes(variant, address, hub, kept):
    hub.recreate("orders", 1)
    hub.publish("orders", "0", [bytes(50_000)] * 40)
    settings = {"store": kept.url, "max_bytes": 300_000, "max_wait": NEVER}
    with variant.consume_batches(address, **settings) as batches:
        sizes = [sum(map(len, batch["body"].to_pylist())) for batch in take(batches, 30)]
    assert min(sizes) >= 300_000
    assert max(sizes) < 300_000 + READ_SIZE + 50_000


@PATHS
def test_a_batch_that_came_with_far_more_bytes_is_cut(variant, address, hub, kept, receive_path):
    hub.recreate("orders", 1)
    hub.publish("orders", "0", [bytes(100)] * 2_000)
    settings = {"store": kept.url, "max_bytes": 1_000, "receive_path": receive_path}
    with variant.consume_batches(address, max_wait=NEVER, **settings) as batches:
        found = take(batches, 1_900)
    assert numbers(found)["0"][:1_900] == [*range(1_900)]
    sizes = [sum(map(len, batch["body"].to_pylist())) for batch in found]
    assert min(sizes) >= 1_000
    assert max(sizes) <= 2_000


def test_events_that_come_one_by_one_are_joined_while_they_wait(member, hub):
    hub.recreate("orders", 1)
    reader = member(max_rows=3, max_wait=NEVER).start()
    eventually(lambda: reader.held)
    for _ in range(6):
        hub.publish("orders", "0", ["event"])
    eventually(lambda: reader.count == 6)
    assert [row for _, row in reader.of("batch")] == [[0, 1, 2], [3, 4, 5]]


def test_an_event_alone_comes_when_it_has_waited_long_enough(member, hub):
    hub.recreate("orders", 1)
    reader = member(max_rows=10, max_wait=0.2).start()
    hub.publish("orders", "0", ["event"])
    eventually(lambda: reader.count == 1)


def test_a_full_partition_holds_up_no_other(variant, address, kept, hub):
    hub.publish("orders", "0", ["event"] * 5_000)
    settings = {"store": kept.url, "max_rows": 10, "max_wait": 0.0}
    with variant.consume_batches(address, **settings) as batches:
        found = []
        while len({*numbers(found)}) < 3:
            found.append(next(batches))
            assert len(found) < 100


# Columns


def test_the_schema_is_known_before_the_first_batch(variant, closed_port):
    """The hub does not even answer."""
    hub = (
        f"Endpoint=sb://127.0.0.1:{closed_port};SharedAccessKeyName=n;SharedAccessKey=k;"
        "EntityPath=orders;UseDevelopmentEmulator=true"
    )
    for columns, schema in [
        (None, SCHEMA),
        (["body"], pa.schema([SCHEMA.field("body")])),
        (("offset", "partition"), pa.schema([SCHEMA.field("offset"), SCHEMA.field("partition")])),
    ]:
        with variant.consume_batches(hub, store="memory:", columns=columns) as batches:
            assert batches.schema == schema


@PATHS
def test_all_columns_are_those_of_read_batches(variant, address, hub, kept, receive_path):
    hub.recreate("orders", 1)
    properties = {"kind": "a", "count": 3}
    hub.publish("orders", "0", ["event"] * 4, properties=properties, partition_key="key")
    settings = {"store": kept.url, "max_rows": 4, "max_wait": NEVER, "receive_path": receive_path}
    with variant.read_batches(address) as batches:
        expected = batches.to_table()
    with variant.consume_batches(address, **settings) as batches:
        (batch,) = take(batches, 4)
    assert batch.schema == batches.schema == SCHEMA
    assert batch.to_pylist() == expected.to_pylist()
    assert batch.to_pylist()[0]["properties"] == [("kind", "a"), ("count", "3")]


@PATHS
@pytest.mark.parametrize(
    "columns", [["body"], ["partition"], ["enqueuedTime", "body"], ["sequenceNumber", "offset"]]
)
def test_columns_come_in_the_order_in_which_they_are_named(
    variant, address, hub, kept, receive_path, columns
):
    settings = {"store": kept.url, "max_rows": 30, "max_wait": NEVER, "receive_path": receive_path}
    with variant.read_batches(address, partition_ids=["0"]) as batches:
        expected = batches.to_table().select(columns).to_pylist()
    hub.recreate("orders", 1)
    rows = expected[:60]
    hub.publish("orders", "0", [f"event {number}" for number in range(100)])
    with variant.consume_batches(address, columns=iter(columns), **settings) as batches:
        found = [row for batch in take(batches, 60) for row in batch.to_pylist()]
        assert [*found[0]] == batches.schema.names == columns
        assert batches.commit() == {"0": 59}
    if "enqueuedTime" not in columns:
        assert found == rows


@PATHS
def test_properties_that_are_not_chosen_are_not_decoded(
    variant, address, hub, kept, receive_path, monkeypatch
):
    """The real client's events have all of them: what counts is that nobody asks."""
    hub.recreate("orders", 1)
    hub.publish("orders", "0", ["event"] * 4, properties={"kind": "a"})
    asked = []
    for kind in (ClientEvents, *subclasses_of(Rows)):
        for name in {"properties", "systems"} & {*vars(kind)}:
            monkeypatch.setattr(kind, name, counted(asked, vars(kind)[name]))
    settings = {"store": kept.url, "max_rows": 4, "max_wait": NEVER, "receive_path": receive_path}
    with variant.consume_batches(address, columns=["body", "partitionKey"], **settings) as batches:
        take(batches, 4)
    assert not asked
    with variant.consume_batches(address, columns=["properties"], **settings) as batches:
        take(batches, 4)
    assert asked


def subclasses_of(kind):
    return [kind, *(each for below in kind.__subclasses__() for each in subclasses_of(below))]


def counted(asked, declared):
    def value(self):
        asked.append(self)
        return declared.fget(self)

    return property(value)


# What a commit covers


@STORES
def test_a_commit_covers_what_was_returned_and_the_next_member_goes_on_behind(
    variant, address, kept
):
    settings = {"store": kept.url, "max_rows": 30, "max_wait": 0.0}
    with variant.consume_batches(address, **settings) as batches:
        first = [next(batches) for _ in range(4)]
        saved = batches.commit()
        assert batches.lost == {}
    seen = numbers(first)
    assert saved == {partition: rows[-1] for partition, rows in seen.items()}
    lasts = {row["partition"]: row for row in map(last_of, first)}
    expected = {one: (row["sequenceNumber"], row["offset"]) for one, row in lasts.items()}
    assert kept.rows() == expected
    with variant.consume_batches(address, **settings) as batches:
        left = sum(map(len, ALL.values())) - sum(map(len, seen.values()))
        rest = numbers(take(batches, left))
        assert batches.commit() == {one: rows[-1] for one, rows in rest.items()}
    assert {one: seen.get(one, []) + rest.get(one, []) for one in ALL} == ALL
    assert kept.numbers() == {one: rows[-1] for one, rows in ALL.items()}


def test_what_was_not_committed_comes_again(variant, address, kept):
    settings = {"store": kept.url, "max_rows": 10, "max_wait": 0.0}
    for _ in range(2):
        with variant.consume_batches(address, **settings) as batches:
            assert numbers(take(batches, 210)) == ALL
    assert kept.rows() == {}


def test_a_commit_writes_only_what_is_not_stored(variant, address, kept):
    with variant.consume_batches(address, store=kept.url, max_wait=0.0) as batches:
        assert batches.commit() == {}
        take(batches, 210)
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
        assert batches.commit() == {}
        assert batches.lost == {}


def test_a_commit_has_the_position_of_a_batch_without_its_columns(variant, address, kept):
    settings = {"store": kept.url, "columns": ["body"], "max_wait": 0.0}
    with variant.consume_batches(address, **settings) as batches:
        take(batches, 210)
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
    assert all(offset for _, offset in kept.rows().values())


@pytest.mark.parametrize("handover", [True, False])
def test_a_later_position_of_another_writer_is_not_put_back(
    variant, address, kept, caplog, handover
):
    settings = {"store": kept.url, "max_wait": 0.0, "handover": handover}
    with variant.consume_batches(address, **settings) as batches:
        take(batches, 210)
        kept.save("0", 150)
        assert batches.commit() == {"1": 99, "2": 9}
        assert batches.lost == {}
        assert batches.commit() == {}
    assert kept.numbers() == {"0": 150, "1": 99, "2": 9}
    assert "150" in caplog.text


@pytest.mark.parametrize("handover", [True, False])
def test_a_store_that_raises_is_heard_after_the_other_partitions_are_saved(
    variant, address, kept, handover
):
    store = variant.open_store(kept.url, on_stale="raise")
    with variant.consume_batches(address, store=store, max_wait=0.0, handover=handover) as batches:
        take(batches, 210)
        kept.save("0", 150)
        with pytest.raises(StaleCheckpointError, match="150"):
            batches.commit()
        assert kept.numbers() == {"0": 150, "1": 99, "2": 9}
        assert batches.commit() == {}
    variant.close(store)


def test_a_commit_that_the_store_does_not_answer_is_tried_again_by_the_next(
    variant, address, kept, monkeypatch
):
    store = variant.memory_store()
    saving = store.update_checkpoint
    failures = [OSError("no answer")]

    def fails_once(row, **kwargs):
        if failures:
            raise failures.pop()
        return saving(row, **kwargs)

    monkeypatch.setattr(store, "update_checkpoint", fails_once)
    with variant.consume_batches(address, store=store, max_wait=0.0) as batches:
        take(batches, 210)
        with pytest.raises(OSError, match="no answer"):
            batches.commit()
        assert batches.commit() == {"0": 99, "1": 99, "2": 9}
    variant.close(store)


def test_a_commit_after_the_last_batch_is_possible_until_the_block_ends(variant, address, kept):
    with variant.consume_batches(address, store=kept.url, max_wait=0.0) as batches:
        for batch in batches:
            assert batch.num_rows
            if len(numbers([batch])) and batches.commit() and len(kept.numbers()) == 3:
                break
    assert kept.owners() == {}


# Which stores are taken


def test_a_store_that_was_passed_stays_open(variant, address, scope):
    store = variant.open_store("memory:")
    for expected in (210, 0):
        with variant.consume_batches(address, store=store, max_wait=0.0) as batches:
            if expected:
                take(batches, expected)
            assert sum(batches.commit().values()) == (207 if expected else 0)
    rows = variant.finished(store.list_checkpoints(*scope))
    assert len([*rows]) == 3
    variant.close(store)


def test_the_checkpoints_of_read_batches_are_those_of_the_group(variant, address, kept, scope):
    with variant.read_batches(address, scope, kept.url, partition_ids=["0", "1"]) as batches:
        batches.to_table()
        assert batches.commit() == {"0": 99, "1": 99}
    with variant.consume_batches(address, store=kept.url, max_wait=0.0) as batches:
        assert numbers(take(batches, 10)) == {"2": ALL["2"]}
        batches.commit()
    with variant.read_batches(address, scope, kept.url) as batches:
        assert batches.to_table().num_rows == 0
