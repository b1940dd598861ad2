import gc
from contextlib import closing

import pytest

from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.amqp import fast
from eventhub_checkpoints.spark.source.batches import (
    COLLECT_AFTER,
    CONNECTIONS,
    RangeTask,
    read_task,
)
from forks import in_a_child
from waiting import eventually

EIGHT = tuple(
    OffsetRange(partition, begin, begin + 5)
    for partition, begin in [
        ("0", 0), ("1", 0), ("2", 20), ("0", 5), ("2", 0), ("1", 10), ("2", 10), ("2", 5),
    ]
)  # fmt: skip
FAST = ReadSettings(receive_path="fast")


@pytest.fixture
def address(hub):
    return HubAddress.from_connection_string(hub.connection_string("Orders"), retry_total=0)


def read(address, ranges=EIGHT, settings=FAST):
    """The bodies that a task reads."""
    batches = read_task(RangeTask(address, tuple(ranges), settings))
    return [body.decode() for batch in batches for body in batch["body"].to_pylist()]


def bodies(ranges=EIGHT):
    return [
        f"{each.partition_id}/{number}"
        for each in ranges
        for number in range(each.from_sequence_number, each.until_sequence_number)
    ]


def test_a_task_keeps_the_collector_away_from_events_and_brings_it_back(address):
    before = gc.get_threshold()
    task = RangeTask(address, (OffsetRange("0", 0, 10),), ReadSettings())
    with closing(read_task(task)) as batches:
        assert next(batches).num_rows == 10
        assert gc.get_threshold() == (COLLECT_AFTER, *before[1:])
    assert gc.get_threshold() == before


def test_the_ranges_of_tasks_are_read_over_one_connection(hub, address, opened_connections):
    assert read(address) == bodies()
    assert opened_connections() == 1
    assert read(address) == bodies()
    assert opened_connections() == 1
    eventually(lambda: hub.receivers("Orders") == [])
    assert hub.connections() == 1


def test_another_group_is_another_connection(hub, address, opened_connections):
    other = HubAddress.from_connection_string(hub.connection_string("Orders"), "others")
    for _ in range(2):
        assert read(address) == read(other) == bodies()
    assert opened_connections() == 2


def test_a_connection_that_was_dropped_is_replaced_and_nobody_notices(
    hub, address, opened_connections
):
    """No retry is left for it."""
    assert read(address) == bodies()
    hub.drop_connections()
    assert read(address) == bodies()
    assert opened_connections() == 2


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    hub, address, opened_connections, monkeypatch
):
    assert read(address) == bodies()
    monkeypatch.setattr(fast, "IDLE_FOR", 0.0)
    assert read(address) == bodies()
    assert opened_connections() == 2
    eventually(lambda: hub.connections() == 1)


def test_a_connection_that_breaks_in_a_range_loses_and_repeats_nothing(hub, opened_connections):
    hub.publish("Orders", "3", [f"3/{number}" for number in range(3000)])
    address = HubAddress.from_connection_string(hub.connection_string("Orders"))
    ranges = [OffsetRange("0", 0, 5), OffsetRange("3", 10, 3000), OffsetRange("1", 0, 5)]
    settings = ReadSettings(receive_path="fast", rows_per_batch=10, prefetch=10)
    found = []
    for batch in read_task(RangeTask(address, tuple(ranges), settings)):
        found += [body.decode() for body in batch["body"].to_pylist()]
        if len(found) == 105:
            hub.drop_connections()
    assert found == bodies(ranges)
    assert opened_connections() == 2
    assert read(address) == bodies()
    assert opened_connections() == 2


def test_a_task_that_is_not_read_to_its_end_leaves_no_connection(hub, address, opened_connections):
    with closing(read_task(RangeTask(address, EIGHT, FAST))) as batches:
        next(batches)
    eventually(lambda: hub.connections() == 0)
    assert read(address) == bodies()
    assert opened_connections() == 2


def test_a_forked_child_opens_its_own_connection(address, opened_connections):
    assert read(address) == bodies()

    def child():
        found = read(address)
        CONNECTIONS.close()
        return found == bodies()

    assert in_a_child(child) == 0
    assert opened_connections() == 2
    assert read(address) == bodies()
    assert opened_connections() == 2


def test_the_public_path_opens_a_connection_for_each_range(address, opened_connections):
    settings = ReadSettings(receive_path="public")
    assert read(address, EIGHT[:2], settings) == bodies(EIGHT[:2])
    assert opened_connections() == 2
