import gc
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from client_threads import wait_for_clients
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.amqp import fast
from eventhub_checkpoints.spark.source.batches import (
    COLLECT_AFTER,
    CONNECTIONS,
    MAX_SPLITS,
    RangeTask,
    make_tasks,
    plan_batch,
    read_task,
)
from eventhub_checkpoints.spark.source.options import SourceOptions
from forks import in_a_child
from waiting import eventually

EIGHT = tuple(
    OffsetRange(partition, begin, begin + 5)
    for partition, begin in [
        ("0", 0), ("1", 0), ("2", 20), ("0", 5), ("2", 0), ("1", 10), ("2", 10), ("2", 5),
    ]
)  # fmt: skip
FAST = ReadSettings(receive_path="fast")


@pytest.fixture(scope="module")
def server():
    """A hub that no worker of Spark has a connection to."""
    with LocalHub({"Orders": 4}) as running:
        yield running
        wait_for_clients()


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


def tasks_of(hub, **options):
    string = hub.connection_string("Orders")
    parsed = SourceOptions.parse({"connectionString": string, "prefetchCount": "1", **options})
    return make_tasks(parsed, plan_batch(parsed))


@pytest.mark.parametrize("path", ["fast", "public"])
def test_tasks_of_one_partition_read_at_once_beside_an_attempt_that_lingers(hub, path):
    hub.recreate("Orders", 1)
    hub.publish("Orders", "0", [f"{number}" for number in range(400)])
    tasks = [
        replace(task, settings=replace(task.settings, rows_per_batch=10))
        for task in tasks_of(hub, minPartitions="100", receivePath=path)
    ]
    assert len(tasks) == MAX_SPLITS
    with ExitStack() as stack:
        lingering = stack.enter_context(closing(read_task(tasks[0])))
        assert next(lingering).num_rows == 10
        readers = [stack.enter_context(closing(read_task(task))) for task in tasks]
        found = [next(reader)["sequenceNumber"].to_pylist() for reader in readers]
        assert len(hub.receivers("Orders")) == MAX_SPLITS + 1
        for numbers, reader in zip(found, readers, strict=True):
            for batch in reader:
                numbers += batch["sequenceNumber"].to_pylist()
    assert found == [[*range(first, first + 100)] for first in (0, 100, 200, 300)]
    assert not hub.refused_links()


def test_a_task_of_an_exclusive_job_holds_its_partition(hub):
    hub.publish("Orders", "3", ["event"] * 400)
    [*_, task] = tasks_of(hub, ownerLevel="3")
    with closing(
        read_task(replace(task, settings=replace(task.settings, rows_per_batch=10)))
    ) as rows:
        assert next(rows).num_rows == 10
        assert [each.epoch for each in hub.receivers("Orders")] == [3]


def test_the_ranges_of_tasks_are_read_over_one_connection(hub, address, accepted_connections):
    assert read(address) == bodies()
    assert len(accepted_connections) == 1
    assert read(address) == bodies()
    assert len(accepted_connections) == 1
    # Those of earlier tests end a moment after they were closed.
    eventually(lambda: hub.receivers("Orders") == [] and hub.connections() == 1)


def test_another_group_is_another_connection(hub, address, accepted_connections):
    other = HubAddress.from_connection_string(hub.connection_string("Orders"), "others")
    for _ in range(2):
        assert read(address) == read(other) == bodies()
    assert len(accepted_connections) == 2


def test_a_connection_that_was_dropped_is_replaced_and_nobody_notices(
    hub, address, accepted_connections
):
    """No retry is left for it."""
    assert read(address) == bodies()
    hub.drop_connections()
    assert read(address) == bodies()
    assert len(accepted_connections) == 2


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    hub, address, accepted_connections, monkeypatch
):
    assert read(address) == bodies()
    monkeypatch.setattr(fast, "IDLE_FOR", 0.0)
    assert read(address) == bodies()
    assert len(accepted_connections) == 2
    eventually(lambda: hub.connections() == 1)


def test_a_connection_that_breaks_in_a_range_loses_and_repeats_nothing(hub, accepted_connections):
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
    assert len(accepted_connections) == 2
    assert read(address) == bodies()
    assert len(accepted_connections) == 2


def test_a_task_that_is_not_read_to_its_end_leaves_no_connection(
    hub, address, accepted_connections
):
    with closing(read_task(RangeTask(address, EIGHT, FAST))) as batches:
        next(batches)
    eventually(lambda: hub.connections() == 0)
    assert read(address) == bodies()
    assert len(accepted_connections) == 2


def test_a_forked_child_opens_its_own_connection(address, accepted_connections):
    assert read(address) == bodies()

    def child():
        found = read(address)
        CONNECTIONS.close()
        return found == bodies()

    assert in_a_child(child) == 0
    assert len(accepted_connections) == 2
    assert read(address) == bodies()
    assert len(accepted_connections) == 2


def test_the_public_path_opens_a_connection_for_each_range(address, accepted_connections):
    settings = ReadSettings(receive_path="public")
    assert read(address, EIGHT[:2], settings) == bodies(EIGHT[:2])
    assert len(accepted_connections) == 2
