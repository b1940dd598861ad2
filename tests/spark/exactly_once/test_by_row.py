"""Crashes and replays: every event's results are there once, compared by sequence number.

What a database rolls back is shown on both; the rows that are left out do not differ by database.
"""

import pytest
from pyspark.errors import PySparkException

pytestmark = pytest.mark.long


class Crash(BaseException):
    """Nothing catches it, as nothing catches the end of a process."""


def test_a_clean_run_stores_results_and_positions_together(sqlite_results, batch):
    sink = sqlite_results.sink()
    sink(batch(p0=(0, 50), p1=(0, 30)), 0)
    sink(batch(p0=(50, 60)), 1)
    sink(batch(p1=(30, 31), p2=(0, 5)), 2)
    assert sqlite_results.are(p0=60, p1=31, p2=5)


def test_a_crash_before_the_commit_leaves_nothing_and_the_replay_writes_all(results, batch):
    def crashes(connection, rows):
        results.write(connection, rows)
        raise Crash

    results.sink()(batch(p0=(0, 50)), 0)
    with pytest.raises(Crash):
        results.sink(crashes)(batch(p0=(50, 90), p1=(0, 30)), 1)
    assert results.are(p0=50)
    results.sink()(batch(p0=(50, 90), p1=(0, 30)), 1)
    assert results.are(p0=90, p1=30)


def test_a_replay_after_a_crash_behind_the_commit_writes_nothing(results, batch):
    written = []
    results.sink()(batch(p0=(0, 50), p1=(0, 30)), 0)
    results.sink(lambda connection, rows: written.append(rows))(batch(p0=(0, 50), p1=(0, 30)), 0)
    assert not written
    assert results.are(p0=50, p1=30)


def test_a_new_query_begins_where_the_database_says(sqlite_results, batch):
    sqlite_results.sink()(batch(p0=(0, 50), p1=(0, 30)), 7)
    begin = sqlite_results.sink().starting_positions(["0", "1", "2"])
    assert begin.to_kafka() == '{"Orders":{"0":50,"1":30,"2":-2}}'
    sqlite_results.sink()(batch(p0=(50, 70), p1=(30, 40), p2=(0, 5)), 0)
    assert sqlite_results.are(p0=70, p1=40, p2=5)


def test_a_full_replay_in_other_batches_doubles_nothing(sqlite_results, batch):
    first, second = sqlite_results.sink(), sqlite_results.sink()
    first(batch(p0=(0, 50), p1=(0, 30)), 0)
    first(batch(p0=(50, 90), p1=(30, 40)), 1)
    for number, (begin, end) in enumerate([(0, 35), (35, 70), (70, 105)]):
        second(batch(p0=(begin, end), p1=(begin, min(end, 45))), number)
    assert sqlite_results.are(p0=105, p1=45)


def test_results_that_are_made_of_a_batch_count_each_event_once(sqlite_results, batch):
    def add(connection, rows):
        for row in rows:
            for _ in range(row["count"]):
                connection.exec_driver_sql(
                    f"{sqlite_results.insert} VALUES ('{row['partition']}', 0)"
                )

    counting = sqlite_results.sink(add, transform=lambda new: new.groupBy("partition").count())
    for bounds in [(0, 50), (0, 50), (20, 60), (60, 61)]:
        counting(batch(p0=bounds, p1=(0, 30)), 0)
    assert {one: rows for one, (rows, _) in sqlite_results.counts().items()} == {"0": 61, "1": 30}
    assert sqlite_results.positions()["0"][0] == 60


def test_results_may_be_none_and_the_position_moves_all_the_same(sqlite_results, batch):
    none = sqlite_results.sink(transform=lambda new: new.where("false"))
    none(batch(p0=(0, 50)), 0)
    assert sqlite_results.counts() == {}
    assert sqlite_results.positions()["0"][0] == 49


def test_columns_of_kafka_are_enough(sqlite_results, spark):
    written = []
    sink = sqlite_results.sink(lambda connection, rows: written.extend(rows))
    for begin in (0, 5):
        rows = [(b"body", 3, number) for number in range(begin, 10)]
        sink(spark.createDataFrame(rows, "value binary, partition int, offset bigint"), 0)
    assert [row.offset for row in written] == list(range(10))
    assert sqlite_results.positions()["3"][0] == 9


def test_rows_of_two_topics_are_not_taken_for_one_hub(sqlite_results, spark):
    columns = "topic string, partition int, offset bigint"
    sink = sqlite_results.sink(lambda connection, rows: None)
    sink(spark.createDataFrame([("orders", 0, 5)], columns), 0)
    with pytest.raises(PySparkException, match="not of topic Orders"):
        sink(spark.createDataFrame([("orders", 0, 6), ("bills", 0, 9)], columns), 1)
    assert sqlite_results.positions()["0"][0] == 5
