"""Results that carry no position: a batch is taken whole, in its place, or not at all."""

import pytest

from eventhub_checkpoints import ConfigurationError, StaleCheckpointError
from eventhub_checkpoints.spark import OffsetRange, ranges_of
from eventhub_checkpoints.spark.new_rows import is_stored


class Totals:
    """Sums by a key; a batch that is added twice shows."""

    def __init__(self, results, spark):
        self.results, self.spark = results, spark
        self.ranges = []
        self.calls = 0

    def write(self, connection, rows):
        self.calls += 1
        for row in rows:
            connection.exec_driver_sql(
                f"{self.results.insert} VALUES ('{row['device']}', {row['total']})"
            )

    def sink(self, write=None):
        return self.results.sink(write or self.write, ranges=lambda frame, number: self.ranges)

    def run(self, sink, total, **bounds):
        self.ranges = [OffsetRange(one.removeprefix("p"), *bounds[one]) for one in bounds]
        rows = [("lamp", total)] if total else []
        sink(self.spark.createDataFrame(rows, "device string, total bigint"), 0)

    @property
    def total(self):
        return self.results.place.execute(f"SELECT sum(number) FROM {self.results.table}")[0][0]

    @property
    def stored(self):
        return {one: number for one, (number, _) in self.results.positions().items()}


@pytest.fixture
def totals(results, spark):
    return Totals(results, spark)


@pytest.fixture
def of_file(sqlite_results, spark):
    return Totals(sqlite_results, spark)


def test_batches_in_their_order_are_written_and_a_replay_is_left_out(totals):
    sink = totals.sink()
    totals.run(sink, 50, p0=(0, 50), p1=(200, 230))
    totals.run(sink, 50, p0=(0, 50), p1=(200, 230))
    totals.run(sink, 7, p0=(50, 57), p1=(230, 230))
    totals.run(totals.sink(), 7, p0=(50, 57), p1=(230, 230))
    assert (totals.total, totals.calls) == (57, 2)
    assert totals.stored == {"0": 56, "1": 229}


def test_a_crash_before_the_commit_leaves_nothing_and_the_replay_writes_all(totals):
    def crashes(connection, rows):
        totals.write(connection, rows)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        totals.run(totals.sink(crashes), 50, p0=(0, 50))
    assert totals.total is None
    totals.run(totals.sink(), 50, p0=(0, 50))
    assert totals.total == 50


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((20, 60), "this batch holds 20 to 59, and its results cannot be stored in part; end this"),
        ((55, 60), "this batch holds 55 to 59, so 50 to 54 would be skipped; end this query"),
    ],
)
def test_a_batch_that_overlaps_or_skips_is_refused(of_file, bounds, sentence):
    sink = of_file.sink()
    of_file.run(sink, 50, p0=(0, 50), p1=(0, 5))
    with pytest.raises(StaleCheckpointError, match=sentence) as stale:
        of_file.run(sink, 40, p0=bounds, p1=(5, 9))
    assert (stale.value.partition_id, stale.value.newest) == ("0", 49)
    assert of_file.total == 50
    assert of_file.stored == {"0": 49, "1": 4}


def test_a_position_that_moves_before_the_commit_rolls_the_results_back(totals):
    first, second = totals.sink(), totals.sink()
    totals.run(first, 50, p0=(0, 50))
    totals.ranges = [OffsetRange("0", 50, 60)]
    frame = totals.spark.createDataFrame([("lamp", 10)], "device string, total bigint")
    plan = first._plan(frame, 1)
    second(frame, 1)
    with pytest.raises(Exception, match="another query has written first"):
        first._commit(plan)
    first(frame, 1)  # and trying again finds it stored
    assert totals.total == 60


def test_a_batch_with_results_and_no_input_is_refused(of_file):
    sink = of_file.sink()
    of_file.run(sink, 0, p0=(5, 5))
    assert of_file.stored == {}
    with pytest.raises(ConfigurationError, match=r"noDataMicroBatches\.enabled"):
        of_file.run(sink, 50, p0=(5, 5))


def test_the_range_may_be_told_by_the_rows_before_they_are_counted(sqlite_results, batch):
    counted = []
    sink = sqlite_results.sink(
        lambda connection, rows: counted.append(rows[0]["count"]),
        ranges=lambda frame, number: ranges_of(frame),
        transform=lambda frame: frame.groupBy().count(),
    )
    for bounds in [(5, 50), (5, 50), (50, 60)]:
        sink(batch(p0=bounds, p1=bounds), 0)
    with pytest.raises(StaleCheckpointError, match="holds 62 to 69, so 60 to 61 would be skipped"):
        sink(batch(p0=(62, 70)), 0)
    assert counted == [90, 20]


def test_of_several_partitions_all_must_fit():
    ranges = [OffsetRange("0", 10, 20), OffsetRange("1", 5, 9)]
    assert not is_stored(ranges, {"0": 9})
    assert is_stored(ranges, {"0": 19, "1": 30})
    for stored in ({"0": 19, "1": 4}, {"0": 19}, {"0": 9, "1": 8}, {"0": 12, "1": 4}):
        with pytest.raises(StaleCheckpointError):
            is_stored(ranges, stored)


def test_the_ranges_may_come_from_the_querys_own_log(sqlite_results, spark, tmp_path):
    """A stateful count: its rows have no position, and Spark's log tells what it has read."""
    seen = []

    def write(connection, rows):
        seen.append({row["device"]: row["count"] for row in rows})

    log = tmp_path / "log"
    (log / "sources" / "0").mkdir(parents=True)
    (log / "offsets").mkdir()
    (log / "commits").mkdir()
    (log / "sources" / "0" / "0").write_text('\0v1\n{"orders":{"0":5,"1":0}}')
    (log / "offsets" / "0").write_text('v1\n{}\n{"orders":{"0":50,"1":0}}')
    sink = sqlite_results.sink(write, ranges=log)
    frame = spark.createDataFrame([("lamp", 45)], "device string, count bigint")
    sink(frame, 0)
    sink(frame, 0)
    (log / "commits" / "0").write_text("v1\n{}")
    (log / "offsets" / "1").write_text('v1\n{}\n{"orders":{"0":50,"1":8}}')
    with pytest.raises(ConfigurationError, match="ends with batch 0, but this is batch 4"):
        sink(frame, 4)
    sink(frame, 1)
    assert len(seen) == 2
    assert {one: number for one, (number, _) in sqlite_results.positions().items()} == {
        "0": 49,
        "1": 7,
    }
