import gc
from contextlib import closing

from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.spark.source.batches import COLLECT_AFTER, RangeTask, read_task


def test_a_task_keeps_the_collector_away_from_events_and_brings_it_back(hub):
    address = HubAddress.from_connection_string(hub.connection_string("Orders"))
    before = gc.get_threshold()
    task = RangeTask(address, (OffsetRange("0", 0, 10),), ReadSettings())
    with closing(read_task(task)) as batches:
        assert next(batches).num_rows == 10
        assert gc.get_threshold() == (COLLECT_AFTER, *before[1:])
    assert gc.get_threshold() == before
