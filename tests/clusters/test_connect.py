"""Spark Connect: the source, positions, progress and exactly once, from a client of its own."""

import traceback

import pytest
from pyspark.errors import PySparkException
from sqlalchemy import create_engine, text

import spark_runs
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark import (
    CheckpointPublisher,
    ExactlyOnce,
    OffsetRange,
    StagingTable,
    ranges_by_task,
    ranges_of,
    read_spark_checkpoint,
    starting_positions,
)

LEFT = {"0": [*range(5, 10)], "1": [*range(10, 20)], "2": [*range(30)]}
"""What the hub holds behind the checkpoints."""
RANGES = [OffsetRange("0", 5, 10), OffsetRange("1", 10, 20), OffsetRange("2", 0, 30)]
SECONDS = 240
NUMBERED = f"partition as {spark_runs.PARTITION}", f"sequenceNumber as {spark_runs.NUMBER}"


@pytest.fixture
def run(spark, hub, tmp_path):
    """Run a stream from the checkpoints on until it has read what is there."""

    def run(sink, *, folder="query", shape=lambda frame: frame, **options):
        source = spark.readStream.format("eventhubs").options(**hub.options, **options)
        query = (
            sink(shape(source.load()).writeStream)
            .option("checkpointLocation", str(tmp_path / folder))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(SECONDS)
        finally:
            query.stop()
        return query

    return run


def test_a_batch_reads_on_behind_the_checkpoints(spark, hub):
    frame = spark.read.format("eventhubs").options(**hub.options).load()
    assert spark_runs.batch(frame.selectExpr(*NUMBERED)) == LEFT
    assert ranges_of(frame) == RANGES
    tasks = ranges_by_task(frame).values()
    assert sorted((one for held in tasks for one in held), key=str) == RANGES


def test_rows_are_sent_by_the_executors(spark, hub):
    rows = spark.range(0, 40, 1, 4).selectExpr("string(id) as body", "'3' as partitionId")
    target = rows.write.format("eventhubs").option("connectionString", hub.connection_string)
    target.option("eventKeys", "content").mode("append").save()
    assert hub.server.partition_properties(hub.name, "3").last_sequence_number == 39


def test_positions_of_the_client_are_handed_over(spark, hub):
    with hub.store() as store:
        positions = starting_positions(store, hub.scope, hub=hub.connection_string)
    source = spark.read.format("eventhubs").option("connectionString", hub.connection_string)
    frame = source.options(**positions.to_source()).load()
    assert spark_runs.batch(frame.selectExpr(*NUMBERED)) == LEFT


def test_a_stream_reads_on_and_a_publisher_in_the_client_brings_its_progress_back(
    spark, hub, run, tmp_path
):
    with hub.store() as store, CheckpointPublisher(store, hub.scope) as publisher:
        publisher.attach(spark)
        run(
            lambda writer: writer.format("memory").queryName("streamed"),
            shape=publisher.observe,
            maxEventsPerTrigger="20",
        )
        publisher.flush(SECONDS)
    assert spark_runs.batch(spark.table("streamed").selectExpr(*NUMBERED)) == LEFT
    ends = {one: hub.server.partition_properties(hub.name, one) for one in LEFT}
    assert hub.stored() == {
        one: (end.last_sequence_number, end.last_offset) for one, end in ends.items()
    }
    found = read_spark_checkpoint(tmp_path / "query", hub.name)
    assert (found.batch_id, found.positions) == (2, {"0": 9, "1": 19, "2": 29})


@pytest.fixture
def results(tmp_path):
    """A table without a unique key: a row that is written twice is there twice."""
    engine = create_engine(f"sqlite:///{tmp_path}/results.db")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE results (part TEXT, number BIGINT)"))
    yield engine
    engine.dispose()


def test_exactly_once_runs_on_the_server_and_counts_nothing_twice(run, hub, results):
    def write(connection, rows):
        values = [(row.partition, row.sequenceNumber) for row in rows]
        connection.exec_driver_sql("INSERT INTO results VALUES (?, ?)", values)

    with ExactlyOnce(str(results.url), hub.scope, write) as sink:
        for folder in ("query", "begun anew"):
            run(lambda writer: writer.foreachBatch(sink), folder=folder)
    with results.connect() as connection:
        read = connection.execute(text("SELECT part, number FROM results")).all()
    assert spark_runs.sorted_numbers(read) == LEFT


def test_why_something_cannot_be_sent_to_the_server_is_in_the_traceback(run, hub, results):
    with (
        ExactlyOnce(results, hub.scope, print) as sink,
        pytest.raises(PySparkException, match="Cannot serialize the function") as caught,
    ):
        run(lambda writer: writer.foreachBatch(sink))
    told = "".join(traceback.format_exception(caught.value))
    assert "ExactlyOnce runs on the server: pass the database's URL" in told


def test_a_staging_table_needs_classic_spark(run, hub, results):
    with (
        ExactlyOnce(str(results.url), hub.scope, print, staging=StagingTable("staged")) as sink,
        pytest.raises(PySparkException, match="staging= needs classic Spark"),
    ):
        run(lambda writer: writer.foreachBatch(sink))


def test_a_query_checkpoint_elsewhere_needs_classic_spark(spark):
    with pytest.raises(ConfigurationError, match="Connect does not have; pass a classic"):
        read_spark_checkpoint("hdfs://somewhere/query", "Orders", spark)
