"""What is tried again, what is told at once, and what cannot work."""

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from eventhub_checkpoints import ConfigurationError, Scope, StoreUnavailableError
from eventhub_checkpoints.spark.exactly_once import ExactlyOnce
from eventhub_checkpoints.spark.staging import StagingTable
from eventhub_checkpoints.sql import SqlCheckpointStore

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


def nothing(connection, rows):
    """Writes nothing."""


def failing(results, error, times=1):
    """A `write` that fails so often after it has written, and how often it was called."""
    calls = []

    def write(connection, rows):
        results.write(connection, rows)
        calls.append(len(rows))
        if len(calls) <= times:
            error(connection)

    return write, calls


def test_a_connection_that_breaks_within_the_transaction_is_no_end(postgres_results, batch):
    end = "SELECT pg_terminate_backend(pg_backend_pid())"
    write, calls = failing(postgres_results, lambda connection: connection.exec_driver_sql(end))
    postgres_results.sink(write)(batch(p0=(0, 50)), 0)
    assert postgres_results.are(p0=50)
    assert calls == [50, 50]


def test_rows_that_nothing_has_written_are_not_passed(sqlite_results, batch):
    def write(connection, rows):
        return map(connection.execute, rows)

    with pytest.raises(ConfigurationError, match="write' returned a map, which nothing runs"):
        sqlite_results.sink(write)(batch(p0=(0, 50)), 0)
    assert sqlite_results.positions() == {}


def test_a_transform_that_returns_no_frame_is_named(sqlite_results, batch):
    sink = sqlite_results.sink(nothing, transform=lambda frame: frame.collect())
    with pytest.raises(ConfigurationError, match="the result of transform is of type list; exp"):
        sink(batch(p0=(0, 50)), 0)
    assert sqlite_results.positions() == {}


def test_a_database_that_stays_away_is_told_after_the_timeout(sqlite_results, batch):
    def away(connection):
        raise StoreUnavailableError("away")

    write, calls = failing(sqlite_results, away, times=1000)
    with pytest.raises(StoreUnavailableError, match="away"):
        sqlite_results.sink(write, timeout=0.5)(batch(p0=(0, 50)), 0)
    assert len(calls) > 1
    assert sqlite_results.counts() == {}


def wrong_table(connection):
    connection.execute(text("SELECT * FROM no_such_table"))


def wrong_parameter(connection):
    connection.exec_driver_sql("SELECT 1", {"a": object()})
    connection.exec_driver_sql("SELECT ?, %s", (1,))


def wrong_value(connection):
    raise ValueError("the 7th row")


@pytest.mark.parametrize("error", [wrong_table, wrong_parameter, wrong_value])
def test_a_mistake_in_write_is_told_at_once_as_it_is(results, batch, error):
    write, calls = failing(results, error)
    with pytest.raises((SQLAlchemyError, ValueError)):
        results.sink(write)(batch(p0=(0, 50)), 0)
    assert calls == [50]
    assert results.counts() == results.positions() == {}


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_a_write_that_ends_the_transaction_is_refused(results, batch, how):
    write, _ = failing(results, lambda connection: getattr(connection, how)())
    with pytest.raises(ConfigurationError, match="write must not commit or roll back"):
        results.sink(write)(batch(p0=(0, 50)), 0)


def test_more_rows_than_the_driver_may_take_are_refused_with_the_ways_out(sqlite_results, batch):
    sink = sqlite_results.sink(max_rows=50)
    sink(batch(p0=(0, 50)), 0)
    with pytest.raises(ConfigurationError, match=r"more than 50 rows.*staging=StagingTable"):
        sink(batch(p0=(0, 101)), 1)
    assert sqlite_results.are(p0=50)


def test_a_batch_without_positions_is_refused_with_the_ways_out(sqlite_results, batch):
    frame = batch(p0=(0, 50)).groupBy("partition").count()
    with pytest.raises(ConfigurationError, match=r"columns partition, count;.*pass ranges="):
        sqlite_results.sink()(frame, 0)


@pytest.mark.parametrize("missing", ["partition", "sequenceNumber"])
def test_a_row_without_a_position_is_not_left_out_in_silence(sqlite_results, batch, missing):
    frame = batch(p0=(0, 3)).selectExpr(
        *(
            f"nullif({name}, {name}) AS {name}" if name == missing else name
            for name in ("partition", "sequenceNumber", "offset")
        )
    )
    with pytest.raises(PySparkException, match="no partition or sequence number"):
        sqlite_results.sink()(frame, 0)


def test_a_checkpoint_without_a_number_is_named(sqlite_results, batch):
    place, scope = sqlite_results.place, sqlite_results.scope
    place.put_raw("checkpoint", scope, "3", {"offset": "4294967296"})
    with pytest.raises(ConfigurationError, match=r"checkpoint of partition 3 of .* has no seq"):
        sqlite_results.sink()(batch(p0=(0, 3)), 0)


@pytest.mark.parametrize("kind", ["engine", "store"])
def test_an_engine_or_a_store_of_ones_own_is_used_and_left_open(results, batch, kind):
    engine = create_engine(results.place.engine.url)
    schema = results.place.tables.schema
    given = SqlCheckpointStore(engine, schema=schema) if kind == "store" or schema else engine
    with ExactlyOnce(given, results.scope, results.write) as sink:
        sink(batch(p0=(0, 50)), 0)
        sink(batch(p0=(0, 50)), 0)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    engine.dispose()
    assert results.are(p0=50)


def test_the_tables_are_created_where_they_are_missing(sqlite_results, batch):
    sqlite_results.place.vanish()
    sqlite_results.sink()(batch(p0=(0, 5)), 0)
    assert sqlite_results.are(p0=5)


def test_it_can_be_sent_to_a_server_of_spark_connect(sqlite_results, batch):
    place, written = sqlite_results.place, str(sqlite_results.insert)

    def write(connection, rows):
        for row in rows:
            connection.exec_driver_sql(f"{written} VALUES ('0', {row.sequenceNumber})")

    made = ExactlyOnce(place.url, sqlite_results.scope, write, transform=lambda new: new.cache())
    with cloudpickle.loads(cloudpickle.dumps(made)) as sink:
        sink(batch(p0=(0, 5)), 0)
    assert sqlite_results.are(p0=5)


def test_an_engine_cannot_be_sent(sqlite_results):
    with (
        ExactlyOnce(sqlite_results.place.engine, SCOPE, nothing) as sink,
        pytest.raises(ConfigurationError, match="pass the database's URL"),
    ):
        cloudpickle.dumps(sink)


def test_no_text_of_it_shows_the_password():
    with ExactlyOnce("postgresql://me:hidden@127.0.0.1:1/db", SCOPE, nothing) as sink:
        assert "hidden" not in repr(sink)
        assert "127.0.0.1" in repr(sink)


@pytest.mark.parametrize(
    ("target", "settings", "sentence"),
    [
        ("memory:", {}, "cannot write inside a transaction; expected sqlite:///FILE"),
        (7, {}, "is of type int; expected a URL, or an Engine"),
        ("sqlite:///x.db", {"scope": "orders"}, "scope is of type str; expected a Scope"),
        ("sqlite:///x.db", {"max_rows": 0}, "max_rows is 0; expected a whole number of at least 1"),
        ("sqlite:///x.db", {"timeout": 0}, "timeout is 0; expected a number of seconds, above 0"),
    ],
)
def test_what_cannot_work_is_told_at_once(target, settings, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        ExactlyOnce(target, **{"scope": SCOPE, "write": nothing} | settings)


def test_staging_needs_a_url(sqlite_results):
    with pytest.raises(ConfigurationError, match="staging= needs the URL of the database"):
        ExactlyOnce(sqlite_results.place.engine, SCOPE, nothing, staging=StagingTable("s"))
