"""What the connector's queries report and write is read back into positions."""

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
def frame(connector):
    """A stream from 3, 0, 29 and 0."""
    starts = {"0": 3, "1": 0, "2": 29, "3": 0}
    text = StartingPositions(connector.hub, by_number(starts)).to_connector()
    return connector.frame(startingPositions=text)


def forms(progress):
    """Every form in which this progress may be handed over."""
    found = [progress]
    if not isinstance(progress, dict):
        found += [progress.json, json.loads(progress.json), progress.sources[0]]
        found += [progress.sources[0].endOffset]
        return found
    end = progress["sources"][0]["endOffset"]
    return [*found, json.dumps(progress), progress["sources"][0], end, json.dumps(end)]


def test_every_form_of_progress_is_parsed(connector, frame, folder):
    run = spark_runs.stream(frame, folder)
    assert run.heard
    for progress in (run.heard[-1], run.last, run.recent[-1]):
        for form in forms(progress):
            assert parse_progress(form, connector.hub) == COMMITTED, form
            assert parse_progress(form, connector.hub.upper()) == COMMITTED, form


def test_the_start_of_the_first_batch_is_no_progress(connector, frame, folder):
    run = spark_runs.stream(frame, folder)
    for start in (run.heard[0].sources[0].startOffset, run.recent[0]["sources"][0]["startOffset"]):
        assert start in (None, "None")
        assert parse_progress(start, connector.hub) == {}


def test_its_own_writer_of_progress_is_understood(connector):
    json_utils = connector.spark._jvm.org.apache.spark.sql.eventhubs.JsonUtils
    known = json_utils.partitionSeqNos('{"Orders":{"0":5,"1":0,"31":4294967296}}')
    written = json_utils.partitionSeqNos(known)
    assert parse_progress(written, "orders") == {"0": 4, "31": 2**32 - 1}


def test_a_checkpoint_folder_tells_the_last_batch_and_its_ranges(connector, frame, folder):
    spark_runs.stream(frame, folder)
    found = read_spark_checkpoint(str(folder), connector.hub)
    assert (found.batch_id, found.positions, found.pending) == (0, COMMITTED, [])
    assert nonempty(found.ranges) == RANGES
    connector.server.publish(connector.hub, "3", ["3/0", "3/1"])
    spark_runs.stream(frame, folder)
    found = read_spark_checkpoint(str(folder), connector.hub)
    assert (found.batch_id, found.positions) == (1, {**COMMITTED, "3": 1})
    assert nonempty(found.ranges) == [OffsetRange("3", 0, 2)]


def test_a_batch_that_failed_is_pending(connector, frame, folder):
    def fail(rows, batch_id):
        raise RuntimeError("the sink is down")

    assert spark_runs.stream(frame, folder, fail).error is not None
    found = read_spark_checkpoint(str(folder), connector.hub)
    assert (found.batch_id, found.positions, found.ranges) == (None, {}, [])
    assert nonempty(found.pending) == RANGES


def nonempty(ranges):
    return [one for one in ranges if not one.is_empty]
