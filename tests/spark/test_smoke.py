"""Each way through Spark once: a batch and a stream are read, written, published and stored.

These tests share the one session of the deterministic suite. What options, positions, offsets and
plans are is shown without Spark; what each of them does in a job is in the long suite.
"""

from contextlib import suppress

import pytest
from pyspark.errors import AnalysisException

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.receive import HubAddress, OffsetRange
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.spark import CheckpointPublisher, ExactlyOnce, starting_positions
from eventhub_checkpoints.sql import SqlCheckpointStore
from waiting import LIMIT

WAIT = 2 * LIMIT
"""Seconds after which a query counts as stuck; it may have to start Spark's Python processes."""


@pytest.fixture
def out(hub):
    """An empty hub with one partition."""
    with suppress(ValueError):
        hub.create("out", 1)
    hub.recreate("out", 1)
    return HubAddress.from_connection_string(hub.connection_string("out"))


def sent(hub, out):
    """The bodies that a hub holds, sorted."""
    end = hub.partition_properties("out", "0").last_sequence_number + 1
    batches = read_range(out, OffsetRange("0", 0, end))
    return sorted(body.decode() for batch in batches for body in batch["body"].to_pylist())


def numbers(store, scope):
    return {row["partition_id"]: row["sequence_number"] for row in store.list_checkpoints(*scope)}


@pytest.fixture
def positions(address):
    """A store's checkpoints, at which jobs begin: 1, 2 and 3 events of the partitions are left."""
    store = MemoryCheckpointStore()
    for partition, number in {"0": 8, "1": 17, "2": 26}.items():
        row = {"partition_id": partition, "offset": None, "sequence_number": number}
        store.update_checkpoint(address.scope().as_dict() | row)
    return starting_positions(store, address.scope(), ["0", "1", "2", "3"]).to_source()


LEFT = ["0/9", "1/18", "1/19", "2/27", "2/28", "2/29"]


def test_a_batch_is_read_from_a_stores_positions_and_written(spark, hub, address, out, positions):
    source = spark.read.format("eventhubs").options(**positions)
    frame = source.option("connectionString", address.connection_string).load()
    sink = frame.select("body", "properties").write.format("eventhubs").mode("append")
    sink.option("connectionString", out.connection_string).save()
    assert sent(hub, out) == LEFT


def test_a_stream_is_read_and_written_and_its_progress_is_published(
    spark, hub, address, out, positions, tmp_path
):
    store, scope = MemoryCheckpointStore(), address.scope()
    source = spark.readStream.format("eventhubs").options(**positions)
    frame = source.option("connectionString", address.connection_string).load()
    with CheckpointPublisher(store, scope).attach(spark) as publisher:
        sink = publisher.observe(frame, partitions=4).select("body").writeStream
        query = (
            sink.format("eventhubs")
            .options(connectionString=out.connection_string, eventKeys="content")
            .option("checkpointLocation", str(tmp_path / "query"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(WAIT)
    assert sent(hub, out) == LEFT
    assert numbers(store, scope) == {"0": 9, "1": 19, "2": 29}
    assert publisher.stats().with_offset == 3


def test_results_of_a_stream_and_its_positions_are_stored_together(start_query, address, tmp_path):
    url, scope, written = f"sqlite:///{tmp_path / 'results.db'}", address.scope(), []

    def write(connection, rows):
        connection.exec_driver_sql("SELECT 1")
        written.extend((row.partition, row.sequenceNumber) for row in rows)

    with ExactlyOnce(url, scope, write) as sink:
        for checkpoint in ("first", "again"):
            assert start_query(sink, checkpoint=checkpoint).awaitTermination(WAIT)
    assert len(written) == len(set(written)) == 60
    with SqlCheckpointStore(url) as store:
        assert numbers(store, scope) == {"0": 9, "1": 19, "2": 29}


def test_a_mistake_is_a_sentence_of_ours(spark, address):
    source = spark.read.format("eventhubs").option("startingPositon", "earliest")
    with pytest.raises(AnalysisException, match="did you mean startingPosition"):
        source.option("connectionString", address.connection_string).load()
