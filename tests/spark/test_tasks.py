import gc
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.spark.source.batches import (
    COLLECT_AFTER,
    MAX_SPLITS,
    RangeTask,
    make_tasks,
    plan_batch,
    read_task,
)
from eventhub_checkpoints.spark.source.options import SourceOptions


def test_a_task_keeps_the_collector_away_from_events_and_brings_it_back(hub):
    address = HubAddress.from_connection_string(hub.connection_string("Orders"))
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
