"""What Spark's Kafka queries report and write is read back into positions."""

import json

import pytest

import spark_runs
from eventhub_checkpoints.spark import (
    OffsetRange,
    StartingPositions,
    parse_progress,
    read_spark_checkpoint,
)
from eventhub_checkpoints.spark.positions import by_number

COMMITTED = {"0": 9, "1": 19, "2": 29}
RANGES = [OffsetRange("0", 3, 10), OffsetRange("1", 0, 20), OffsetRange("2", 29, 30)]


@pytest.fixture
def starting(topic):
    """Options of a stream from 3, 0, 29 and 0."""
    starts = {"0": 3, "1": 0, "2": 29, "3": 0}
    return {"startingOffsets": StartingPositions(topic.name, by_number(starts)).to_kafka()}


def forms(progress):
    """Every form in which this progress may be handed over; it is an object that is a dict."""
    end = progress["sources"][0]["endOffset"]
    return [progress, progress.json, progress.sources[0], end, json.loads(end), dict(progress)]


def test_every_form_of_progress_is_parsed(topic, starting, folder):
    run = spark_runs.stream(topic.frame(**starting), folder)
    assert run.heard
    for progress in (run.heard[-1], run.last, run.recent[-1]):
        for form in forms(progress):
            assert parse_progress(form, topic.name) == COMMITTED, form
            assert parse_progress(form, topic.name.upper()) == COMMITTED, form


def test_the_start_of_the_first_batch_is_no_progress(topic, starting, folder):
    run = spark_runs.stream(topic.frame(**starting), folder)
    for progress in (run.heard[0], run.last):
        start = progress["sources"][0]["startOffset"]
        assert start in (None, "None", "null")
        assert parse_progress(start, topic.name) == {}
    assert parse_progress(json.loads(run.heard[0].json)["sources"][0]["startOffset"], None) == {}


def test_each_batch_ends_where_the_next_one_begins(topic, starting, folder):
    run = spark_runs.stream(topic.frame(**starting, maxOffsetsPerTrigger="7"), folder)
    assert len(run.heard) == len(run.batches) >= 4
    for one, following in zip(run.heard, run.heard[1:], strict=False):
        end, start = one.sources[0].endOffset, following.sources[0].startOffset
        assert parse_progress(end, topic.name) == parse_progress(start, topic.name)
    assert parse_progress(run.heard[-1], topic.name) == COMMITTED


def test_what_was_committed_is_where_the_next_job_begins(topic, starting, folder):
    run = spark_runs.stream(topic.frame(**starting), folder)
    topic.publish("0", 1)
    topic.publish("3", 2)
    committed = parse_progress(run.last, topic.name)
    after = StartingPositions.after(topic.name, committed, ["0", "1", "2", "3"])
    assert topic.batch(startingOffsets=after.to_kafka()) == {"0": [10], "3": [0, 1]}


def test_a_checkpoint_folder_tells_the_last_batch_and_its_ranges(topic, starting, folder):
    spark_runs.stream(topic.frame(**starting), folder)
    found = read_spark_checkpoint(folder, topic.name)
    assert (found.batch_id, found.positions, found.pending) == (0, COMMITTED, [])
    assert nonempty(found.ranges) == RANGES
    topic.publish("3", 2)
    spark_runs.stream(topic.frame(**starting), folder)
    found = read_spark_checkpoint(folder, topic.name)
    assert (found.batch_id, found.positions) == (1, {**COMMITTED, "3": 1})
    assert nonempty(found.ranges) == [OffsetRange("3", 0, 2)]


def test_sparks_hadoop_client_reads_the_same(topic, starting, folder):
    spark_runs.stream(topic.frame(**starting), folder)
    found = read_spark_checkpoint(folder.as_uri(), topic.name, topic.spark)
    assert found == read_spark_checkpoint(folder, topic.name)


def test_a_batch_that_failed_is_pending(topic, starting, folder):
    def fail(rows, batch_id):
        raise RuntimeError("the sink is down")

    assert spark_runs.stream(topic.frame(**starting), folder, fail).error is not None
    found = read_spark_checkpoint(folder, topic.name)
    assert (found.batch_id, found.positions, found.ranges) == (None, {}, [])
    assert nonempty(found.pending) == RANGES


def nonempty(ranges):
    return [one for one in ranges if not one.is_empty]
