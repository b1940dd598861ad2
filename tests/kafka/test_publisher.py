"""The progress of Spark's Kafka source comes into the store of the consumers."""

import pytest

import spark_runs
from eventhub_checkpoints import open_store
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark import starting_positions
from eventhub_checkpoints.spark.publisher import CheckpointPublisher

COMMITTED = {"0": 9, "1": 19, "2": 29}
PARTITIONS = ["0", "1", "2", "3"]


def stored(store, scope):
    rows = store.list_checkpoints(*scope)
    return {row["partition_id"]: row["sequence_number"] for row in rows}


def test_what_a_query_has_committed_is_in_the_store(topic, store, folder):
    with CheckpointPublisher(store, topic.scope) as publisher:
        publisher.attach(topic.spark)
        frame = topic.frame(startingOffsets="earliest", maxOffsetsPerTrigger="7")
        run = spark_runs.stream(frame, folder)
        assert len(run.batches) > 1
        publisher.flush()
        assert stored(store, topic.scope) == COMMITTED
        topic.publish("3", 2)
        spark_runs.stream(frame, folder)
        publisher.flush()
        assert stored(store, topic.scope) == {**COMMITTED, "3": 1}


def test_the_next_job_begins_behind_what_was_published(topic, store, folder):
    with CheckpointPublisher(store, topic.scope) as publisher:
        publisher.attach(topic.spark)
        spark_runs.stream(topic.frame(startingOffsets="earliest"), folder)
    for partition in PARTITIONS:
        topic.publish(partition, 1)
    positions = starting_positions(store, topic.scope, PARTITIONS)
    read = topic.batch(startingOffsets=positions.to_kafka())
    assert read == {"0": [10], "1": [20], "2": [30], "3": [0]}


def test_a_batch_that_failed_is_not_published(topic, store, folder):
    def fail_in_the_second(rows, batch_id):
        if batch_id == 1:
            raise RuntimeError("the sink is down")

    with CheckpointPublisher(store, topic.scope) as publisher:
        publisher.attach(topic.spark)
        frame = topic.frame(startingOffsets="earliest", maxOffsetsPerTrigger="12")
        run = spark_runs.stream(frame, folder, fail_in_the_second)
    assert run.error is not None
    published = stored(store, topic.scope)
    assert published == {one: numbers[-1] for one, numbers in run.batches[0].items()}


def test_what_a_crash_kept_from_the_store_is_caught_up_from_the_folder(topic, store, folder):
    spark_runs.stream(topic.frame(startingOffsets="earliest"), folder)
    assert stored(store, topic.scope) == {}
    with CheckpointPublisher(store, topic.scope) as publisher:
        assert publisher.catch_up(folder) == COMMITTED
    assert stored(store, topic.scope) == COMMITTED


def test_a_store_may_be_named_by_its_url(topic, folder, tmp_path):
    url = f"sqlite:///{tmp_path / 'positions.db'}"
    with open_store(url) as store:
        store.create()
        with CheckpointPublisher(url, topic.scope) as publisher:
            publisher.attach(topic.spark)
            spark_runs.stream(topic.frame(startingOffsets="earliest"), folder)
        assert stored(store, topic.scope) == COMMITTED


def test_it_never_goes_back(topic, store, folder):
    topic.checkpoint(store, p0=9, p1=25, p2=4)
    with CheckpointPublisher(store, topic.scope) as publisher:
        publisher.attach(topic.spark)
        spark_runs.stream(topic.frame(startingOffsets="earliest"), folder)
    assert stored(store, topic.scope) == {"0": 9, "1": 25, "2": 29}


def test_rows_of_kafka_have_no_offset_text_to_observe(topic, store):
    with CheckpointPublisher(store, topic.scope) as publisher, pytest.raises(ConfigurationError):
        publisher.observe(topic.frame(startingOffsets="earliest"))
