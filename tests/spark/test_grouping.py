from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from eventhub_checkpoints.receive import OffsetRange
from eventhub_checkpoints.spark.source.batches import (
    MAX_SPLITS,
    divided,
    event_count,
    grouped,
    make_tasks,
)
from eventhub_checkpoints.spark.source.options import SourceOptions

RANGES = st.lists(st.integers(0, 1000), max_size=40).map(
    lambda sizes: [OffsetRange(str(one), 5, 5 + size) for one, size in enumerate(sizes)]
)


@given(RANGES, st.integers(1, 10))
def test_every_range_is_in_one_group_and_no_group_is_too_large(ranges, per_task):
    groups = grouped(ranges, per_task)
    together = [one for group in groups for one in group]
    assert sorted(together, key=lambda one: int(one.partition_id)) == ranges
    assert all(1 <= len(group) <= per_task for group in groups)
    assert len(groups) == -(-len(ranges) // per_task)


def test_large_ranges_come_into_different_tasks():
    ranges = [OffsetRange(str(one), 0, size) for one, size in enumerate([900, 800, 100, 1])]
    assert [[event_count(one) for one in group] for group in grouped(ranges, 2)] == [
        [900, 1],
        [800, 100],
    ]


@given(RANGES.filter(bool), st.integers(1, 200))
@example([OffsetRange("0", 5, 5)], 2)
def test_divided_ranges_are_the_same_events_in_order(ranges, count):
    parts = divided(ranges, count)
    for whole in ranges:
        own = [each for each in parts if each.partition_id == whole.partition_id]
        assert 1 <= len(own) <= MAX_SPLITS
        assert own[0].from_sequence_number == whole.from_sequence_number
        assert own[-1].until_sequence_number == whole.until_sequence_number
        for one, following in pairwise(own):
            assert one.until_sequence_number == following.from_sequence_number
            assert abs(event_count(one) - event_count(following)) <= 1


def test_large_ranges_are_divided_and_small_ones_are_not():
    ranges = [OffsetRange(str(one), 5, 5 + size) for one, size in enumerate([900, 300, 1])]
    sizes = [(each.partition_id, event_count(each)) for each in divided(ranges, 5)]
    assert sizes == [("0", 225)] * 4 + [("1", 300), ("2", 1)]
    assert divided(ranges, 3) == ranges


def ranges_of_tasks(count, **options):
    """Sizes of the tasks for so many ranges."""
    string = "Endpoint=sb://ns/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"
    parsed = SourceOptions.parse({"connectionString": string, **options})
    tasks = make_tasks(parsed, [OffsetRange(str(number), 0, 9) for number in range(count)])
    return [len(task.ranges) for task in tasks]


def test_a_task_reads_one_range_by_default():
    assert ranges_of_tasks(32) == [1] * 32
    assert ranges_of_tasks(32, partitionsPerTask="5") == [5] * 4 + [4] * 3


def test_auto_leaves_one_task_for_each_core(monkeypatch):
    assert ranges_of_tasks(32, partitionsPerTask="auto", parallelism="8") == [4] * 8
    assert max(ranges_of_tasks(33, partitionsPerTask="auto", parallelism="8")) == 5
    assert ranges_of_tasks(0, partitionsPerTask="auto", parallelism="8") == []
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert ranges_of_tasks(32, partitionsPerTask="auto") == [16] * 2
