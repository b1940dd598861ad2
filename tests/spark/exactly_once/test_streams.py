"""Whole queries on a hub: they fail, and every result is there once.

`tests/spark/test_crashes.py` kills their drivers.
"""

import shutil

import pytest
from pyspark.errors import StreamingQueryException
from sqlalchemy import text

from eventhub_checkpoints.spark.staging import StagingTable
from spark_runs import DRAINS

pytestmark = pytest.mark.long

RUNS, FAILS_AT = (1, 2) if DRAINS else (4, 1)
"""How often a query must be run to have read all, and at which call one fails."""
EACH = 20
"""How many events a batch has."""
WAIT = 240
"""Seconds after which a query counts as stuck."""
ALL = {"0": (10, 10), "1": (20, 20), "2": (30, 30)}
"""How many rows each partition has, and how many different ones."""


@pytest.fixture
def start(start_query):
    """Start a query that reads what is there, in batches."""

    def start(sink, shape=None, limit=EACH, **options):
        return start_query(sink, shape=shape, maxEventsPerTrigger=limit, **options)

    return start


@pytest.fixture
def drain(start):
    """Run a query until it has read what was there."""

    def drain(*arguments, **options):
        for _ in range(RUNS):
            assert start(*arguments, **options).awaitTermination(WAIT)

    return drain


def failing(call):
    """The same, and at one call the query fails when it is over."""
    calls = []

    def wrapped(*arguments):
        call(*arguments)
        calls.append(arguments)
        if len(calls) == FAILS_AT:
            raise RuntimeError("the query fails here")

    return wrapped


def sink_failing(results, stage):
    if stage == "in the transaction":
        return results.sink(failing(results.write))
    return failing(results.sink())


@pytest.mark.parametrize(
    ("stage", "checkpoint"),
    [
        ("in the transaction", "deleted, from the store"),
        ("behind the commit", "deleted, from 0"),
    ],
)
def test_a_query_that_failed_goes_on_exactly(
    sqlite_results, start, drain, tmp_path, stage, checkpoint
):
    with pytest.raises(StreamingQueryException, match="the query fails here"):
        start(sink_failing(sqlite_results, stage)).awaitTermination(WAIT)
    done = EACH * (FAILS_AT - (stage == "in the transaction"))
    assert sum(rows for rows, _ in sqlite_results.counts().values()) == done
    shutil.rmtree(tmp_path / "query")
    options = {}
    if checkpoint == "deleted, from the store":
        options = sqlite_results.sink().starting_positions(range(4)).to_source()
    drain(sqlite_results.sink(), limit=25, **options)
    assert sqlite_results.counts() == ALL


def test_two_live_queries_share_the_events_between_them(postgres_results, start):
    for _ in range(RUNS):
        queries = [
            start(postgres_results.sink(), checkpoint=f"query {limit}", limit=limit)
            for limit in (20, 30)
        ]
        assert all(query.awaitTermination(WAIT) for query in queries)
    assert postgres_results.counts() == ALL


def test_rows_that_a_failed_query_has_staged_are_removed_when_it_goes_on(
    sqlite_results, start, drain
):
    staging = StagingTable("staged")

    def positions(frame):
        return frame.select("partition", "sequenceNumber")

    def write(connection, rows):
        insert = f'{sqlite_results.insert} SELECT partition, "sequenceNumber" FROM {rows}'
        connection.execute(text(insert))

    def staged():
        return sqlite_results.place.execute("SELECT count(*) FROM staged")[0][0]

    broken = sqlite_results.sink(failing(write), transform=positions, staging=staging)
    with pytest.raises(StreamingQueryException, match="the query fails here"):
        start(broken).awaitTermination(WAIT)
    assert staged() == EACH
    drain(sqlite_results.sink(write, transform=positions, staging=staging))
    assert sqlite_results.counts() == ALL
    assert staged() == 0


def test_totals_of_a_stateful_query_are_exact_and_a_replay_is_left_out(
    sqlite_results, start, drain, tmp_path
):
    """Its rows have no positions; each batch tells the new totals of some partitions."""
    batches = []

    def write(connection, rows):
        batches.append({row["partition"]: row["count"] for row in rows})
        for row in rows:
            same = f"part = '{row['partition']}'"
            connection.exec_driver_sql(f"DELETE FROM {sqlite_results.table} WHERE {same}")
            value = f"('{row['partition']}', {row['count']})"
            connection.exec_driver_sql(f"{sqlite_results.insert} VALUES {value}")

    def count(stream):
        return stream.groupBy("partition").count()

    def sink():
        return sqlite_results.sink(write, ranges=str(tmp_path / "query"))

    with pytest.raises(StreamingQueryException, match="the query fails here"):
        start(failing(sink()), count, mode="update").awaitTermination(WAIT)
    assert len(batches) == FAILS_AT
    drain(sink(), count, mode="update")
    assert len(batches) == 60 // EACH  # the batch that was run again is not among them
    found = sqlite_results.place.execute(f"SELECT part, number FROM {sqlite_results.table}")
    assert {row[0]: row[1] for row in found} == {one: count for one, (count, _) in ALL.items()}
    assert {one: last for one, (last, _) in sqlite_results.positions().items()} == {
        "0": 9,
        "1": 19,
        "2": 29,
    }
