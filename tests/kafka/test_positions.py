"""Spark's Kafka source takes the positions that this package gives it, and reads exactly there.

On the Kafka endpoint of Event Hubs the offset of an event is its sequence number, so a topic
stands for a hub here.
"""

import pytest
from py4j.protocol import Py4JJavaError

import spark_runs
from eventhub_checkpoints.spark import EventPosition, StartingPositions
from eventhub_checkpoints.spark import ending_positions as ends
from eventhub_checkpoints.spark import starting_positions as starts

PARTITIONS = ["0", "1", "2", "3"]
LOSS = "Some data may have been lost"
AFTER_THE_CHECKPOINTS = {"0": [9], "2": [*range(15, 30)]}


@pytest.fixture
def processed(topic, store):
    """A store in which a consumer has processed up to 8, 19 and 14, and partition 3 not at all."""
    topic.checkpoint(store, p0=8, p1=19, p2=14)
    return store


def at(topic, **numbers):
    positions = {
        name.removeprefix("p"): EventPosition.from_sequence_number(number, inclusive=True)
        for name, number in numbers.items()
    }
    return StartingPositions(topic.name, positions).to_kafka()


def test_a_batch_begins_behind_the_checkpoints(topic, processed):
    positions = starts(processed, topic.scope, PARTITIONS)
    assert topic.batch(startingOffsets=positions.to_kafka()) == AFTER_THE_CHECKPOINTS


def test_a_batch_is_everything_up_to_and_including_the_checkpoints(topic, processed):
    nothing = EventPosition.from_sequence_number(0, inclusive=True)
    until = ends(processed, topic.scope, PARTITIONS, missing=nothing)
    read = topic.batch(startingOffsets="earliest", endingOffsets=until.to_kafka())
    assert read == {"0": [*range(9)], "1": [*range(20)], "2": [*range(15)]}


def test_a_batch_is_exactly_what_lies_between_two_positions(topic):
    read = topic.batch(
        startingOffsets=at(topic, p0=3, p1=0, p2=29, p3=0),
        endingOffsets=at(topic, p0=5, p1=0, p2=30, p3=0),
    )
    assert read == {"0": [3, 4], "2": [29]}


def test_a_stream_begins_behind_the_checkpoints_and_goes_on_by_its_own(topic, processed, folder):
    positions = starts(processed, topic.scope, PARTITIONS)
    first = spark_runs.stream(topic.frame(startingOffsets=positions.to_kafka()), folder)
    assert first.error is None
    assert first.read == AFTER_THE_CHECKPOINTS
    topic.publish("1", 2)
    topic.publish("3", 1)
    again = spark_runs.stream(topic.frame(startingOffsets="earliest"), folder)
    assert again.read == {"1": [20, 21], "3": [0]}


def test_in_batches_of_a_few_everything_is_read_once(topic, processed, folder):
    positions = starts(processed, topic.scope, PARTITIONS)
    frame = topic.frame(startingOffsets=positions.to_kafka(), maxOffsetsPerTrigger="4")
    run = spark_runs.stream(frame, folder)
    assert len(run.batches) >= 4
    assert run.read == AFTER_THE_CHECKPOINTS


def test_where_nothing_is_stored_a_stream_begins_where_it_was_told(topic, store, folder):
    topic.checkpoint(store, p0=8)
    twenty_eighth = EventPosition.from_sequence_number(28, inclusive=True)
    missing = {"1": "latest", "2": twenty_eighth, "3": "earliest"}
    positions = starts(store, topic.scope, PARTITIONS, missing=missing)
    assert positions.to_kafka() == f'{{"{topic.name}":{{"0":9,"1":-1,"2":28,"3":-2}}}}'
    run = spark_runs.stream(topic.frame(startingOffsets=positions.to_kafka()), folder)
    assert run.read == {"0": [9], "2": [28, 29]}


def test_every_partition_has_to_be_named(topic, folder):
    # Why the partitions are asked for, or given: a new one has no checkpoint to be known by.
    some = at(topic, p0=3, p1=0)
    with pytest.raises(Py4JJavaError, match="don't match what are assigned"):
        topic.batch(startingOffsets=some)
    run = spark_runs.stream(topic.frame(startingOffsets=some), folder)
    assert "you must specify all TopicPartitions" in str(run.error)


def test_a_topic_in_another_case_is_another_one(topic, store):
    # Stores keep names in lower case; the scope keeps them as they were typed.
    positions = starts(store, topic.scope, PARTITIONS)
    assert topic.batch(startingOffsets=positions.to_kafka(topic.name))["0"] == [*range(10)]
    with pytest.raises(Py4JJavaError, match="don't match what are assigned"):
        topic.batch(startingOffsets=positions.to_kafka(topic.name.lower()))


def test_a_start_that_has_expired_fails_unless_loss_is_allowed(topic, store, tmp_path):
    topic.checkpoint(store, p0=2, p1=19, p2=29)
    topic.trim("0", before=7)
    options = {"startingOffsets": starts(store, topic.scope, PARTITIONS).to_kafka()}
    lost = spark_runs.stream(topic.frame(**options), tmp_path / "fails")
    assert LOSS in str(lost.error)
    going_on = spark_runs.stream(
        topic.frame(**options, failOnDataLoss="false"), tmp_path / "goes-on"
    )
    assert going_on.read == {"0": [7, 8, 9]}


def test_checkpoints_of_a_hub_that_was_created_again_fail(topic, store, folder):
    topic.checkpoint(store, p0=400)
    options = {"startingOffsets": starts(store, topic.scope, PARTITIONS).to_kafka()}
    with pytest.raises(Py4JJavaError, match="Beginning offset 401 is after the ending offset 10"):
        topic.batch(**options)
    assert LOSS in str(spark_runs.stream(topic.frame(**options), folder).error)
