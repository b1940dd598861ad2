from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.receive import OffsetRange
from eventhub_checkpoints.spark.source.limits import TaskSize, events, grouped

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
    assert [[events(one) for one in group] for group in grouped(ranges, 2)] == [
        [900, 1],
        [800, 100],
    ]


def test_a_task_reads_one_range_unless_told_otherwise():
    assert TaskSize().of(32) == 1
    assert TaskSize(5).of(32) == 5


def test_auto_leaves_one_task_for_each_core(monkeypatch):
    assert TaskSize(None, 8).of(32) == 4
    assert TaskSize(None, 8).of(33) == 5
    assert TaskSize(None, 8).of(0) == 1
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert TaskSize(None).of(32) == 16
