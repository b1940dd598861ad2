"""Large results: written by executors, moved by the transaction, and nothing left behind."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from sqlalchemy import text

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.spark.staging import StagingTable, column_types, stage_rows

NAME = "results_staging"


def positions_only(frame):
    return frame.select("partition", "sequenceNumber")


@pytest.fixture
def staged(results):
    """A sink that stages, its write function, and how many rows the staging table has."""

    class Staged:
        table = results.table.replace("_results", "").replace("eventhub_checkpoints", NAME)

        def write(self, connection, rows):
            connection.execute(
                text(f'{results.insert} SELECT partition, "sequenceNumber" FROM {rows}')
            )

        def sink(self, write=None, **settings):
            staging = StagingTable(NAME, **settings)
            return results.sink(write or self.write, transform=positions_only, staging=staging)

        @property
        def rows(self):
            return results.place.execute(f"SELECT count(*) FROM {self.table}")[0][0]

    made = Staged()
    yield made
    results.place.execute(f"DROP TABLE IF EXISTS {made.table}")


def test_more_rows_than_the_driver_takes_are_moved_once(results, batch, staged):
    lengths = []

    def write(connection, rows):
        lengths.append(len(rows))
        staged.write(connection, rows)

    sink = staged.sink(write)
    sink._max_rows = 1
    for bounds in [(0, 300), (0, 300), (150, 400)]:
        sink(batch(p0=bounds, p1=(0, 30)), 0)
    assert results.are(p0=400, p1=30)
    assert lengths == [330, 100]
    assert staged.rows == 0


def test_a_crash_leaves_rows_that_count_nowhere_and_are_removed_later(results, batch, staged):
    def crashes(connection, rows):
        staged.write(connection, rows)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            staged.sink(crashes)(batch(p0=(0, 50)), 0)
    assert results.counts() == {}
    assert staged.rows == 100
    staged.sink()(batch(p0=(0, 50)), 0)
    assert results.are(p0=50)
    assert staged.rows == 100
    staged.sink(stale_after=1e-6)(batch(p0=(50, 60)), 1)
    assert results.are(p0=60)
    assert staged.rows == 0


def test_the_rows_of_a_task_that_ran_twice_are_moved_once(results, batch, staged, monkeypatch):
    def twice(*arguments):
        *front, rows = arguments
        rows = list(rows)
        list(stage_rows(*front, rows))  # its answer is lost
        return stage_rows(*front, rows)

    monkeypatch.setattr("eventhub_checkpoints.spark.staging.stage_rows", twice)
    staged.sink()(batch(p0=(0, 50)), 0)
    assert results.are(p0=50)
    assert staged.rows == 0


def test_rows_that_are_gone_are_written_again(results, batch, staged, caplog):
    taken = []

    class Forgetful(StagingTable):
        def take(self, *arguments):
            rows = super().take(*arguments)
            if not taken:
                results.place.execute(f'DELETE FROM {rows.table} WHERE "sequenceNumber" = 7')
            taken.append(rows)
            return rows

    sink = results.sink(staged.write, transform=positions_only, staging=Forgetful(NAME))
    sink(batch(p0=(0, 50)), 0)
    assert results.are(p0=50)
    assert len(taken) == 2
    assert "holds only 49 of the 50 rows that executors have written" in caplog.text


def test_every_type_that_a_table_has_comes_through(results, spark, staged):
    moment = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
    values = ("text", b"bytes", True, 1, 2, 3, 0.5, 0.25, Decimal("1.50"), date(2026, 1, 2))
    kinds = "string binary boolean smallint int bigint float double decimal(9,2) date timestamp"
    schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds.split()))
    found = []

    def write(connection, rows):
        found.extend(connection.exec_driver_sql(f"SELECT * FROM {rows} ORDER BY c3").all())

    frame = spark.createDataFrame(
        [("0", 0, *values, moment), ("0", 1, *[None] * 3, 9, *[None] * 7)],
        f"partition string, sequenceNumber bigint, {schema}",
    )
    keep = [f"c{place}" for place in range(11)]
    results.sink(write, transform=lambda new: new.select(*keep), staging=StagingTable(NAME))(
        frame, 0
    )
    first, second = found
    if results.place.url.startswith("sqlite"):
        assert tuple(first) == (*values[:8], "1.50", "2026-01-02", "2026-11-21 10:30:00+00:00")
    else:
        assert tuple(first) == (*values, moment)
    assert [value for value in second if value is not None] == [9]


@pytest.mark.parametrize(
    ("types", "sentence"),
    [
        ({"properties": "map<string,string>"}, "column properties is of type map<string,string>"),
        ({"a b": "string"}, "column 'a b' cannot be staged"),
        ({"staging_task": "string"}, "column 'staging_task' cannot be staged"),
    ],
)
def test_a_column_that_no_table_can_have_is_named(types, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        column_types(types, "sqlite")


def test_a_database_without_a_staging_table_is_named():
    with pytest.raises(ConfigurationError, match="needs PostgreSQL or SQLite, not mysql"):
        column_types({"number": "bigint"}, "mysql")


def test_the_name_of_the_table_is_checked():
    with pytest.raises(ConfigurationError, match="staging table is 'a; DROP'"):
        StagingTable("a; DROP")
