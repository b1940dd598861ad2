"""The connector reads exactly from the positions that this package gives it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import spark_runs
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.spark import (
    EventPosition,
    StartingPositions,
    ending_positions,
    starting_positions,
)
from eventhub_checkpoints.spark.position_formats import compact

PARTITIONS = ["0", "1", "2", "3"]
MILLISECOND = timedelta(milliseconds=1)


def at(number):
    return EventPosition.from_sequence_number(number, inclusive=True)


@pytest.fixture
def text(connector):
    """Positions as the option's text, by keyword: `text(p0=at(3))`; the rest begin at 0."""

    def text(**given):
        made = {"0": at(0), "1": at(0), "2": at(0), "3": at(0)}
        made |= {name.removeprefix("p"): position for name, position in given.items()}
        return StartingPositions(connector.hub, made).to_connector()

    return text


@pytest.fixture
def checkpoints(connector):
    """A store in which a consumer has processed up to 8, 19 and 14, and partition 3 not at all."""
    store = MemoryCheckpointStore()
    for partition, number in {"0": 8, "1": 19, "2": 14}.items():
        store.update_checkpoint(
            {
                **connector.scope.as_dict(),
                "partition_id": partition,
                "offset": str(number),
                "sequence_number": number,
            }
        )
    return store


@pytest.fixture
def after_the_checkpoints(connector, checkpoints):
    return starting_positions(checkpoints, connector.scope, PARTITIONS).to_connector()


def test_a_batch_begins_behind_the_checkpoints(connector, after_the_checkpoints):
    read = connector.batch(startingPositions=after_the_checkpoints)
    assert read == {"0": [9], "2": [*range(15, 30)]}


def test_a_batch_is_everything_up_to_and_including_the_checkpoints(connector, checkpoints, text):
    until = ending_positions(checkpoints, connector.scope, PARTITIONS, missing=at(0))
    read = connector.batch(startingPositions=text(), endingPositions=until.to_connector())
    assert read == {"0": [*range(9)], "1": [*range(20)], "2": [*range(15)]}


def test_a_batch_is_exactly_what_lies_between_two_positions(connector, text):
    read = connector.batch(
        startingPositions=text(p0=at(3), p1=at(19), p2=at(10)),
        endingPositions=text(p0=at(5), p1=at(20), p2=at(10), p3=at(0)),
    )
    assert read == {"0": [3, 4], "1": [19]}


def test_a_stream_begins_behind_the_checkpoints_and_goes_on_by_its_own(
    connector, after_the_checkpoints, text, folder
):
    first = spark_runs.stream(connector.frame(startingPositions=after_the_checkpoints), folder)
    assert first.error is None
    assert first.read == {"0": [9], "2": [*range(15, 30)]}
    connector.server.publish(connector.hub, "1", ["1/20", "1/21"])
    connector.server.publish(connector.hub, "3", ["3/0"])
    again = spark_runs.stream(connector.frame(startingPositions=text()), folder)
    assert again.read == {"1": [20, 21], "3": [0]}


@pytest.fixture
def late(connector):
    """Two events of partition 1 that were enqueued at this very millisecond, and one a later."""
    moment = (datetime.now(UTC) + timedelta(minutes=10)).replace(microsecond=123_000)
    connector.server.publish(connector.hub, "1", ["late"] * 2, enqueued_time=moment)
    connector.server.publish(connector.hub, "1", ["later"], enqueued_time=moment + MILLISECOND)
    return moment


def test_every_form_of_position_is_read_from(connector, text, late):
    offset = connector.server.partition_properties(connector.hub, "2").last_offset
    read = connector.batch(
        startingPositions=text(
            p0=EventPosition.from_end_of_stream(),
            p1=EventPosition.from_enqueued_time(late - MILLISECOND),
            p2=EventPosition.from_offset(offset, inclusive=True),
            p3=EventPosition.from_start_of_stream(),
        )
    )
    assert read == {"1": [20, 21, 22], "2": [29]}


def test_its_time_is_the_last_one_that_is_not_read(connector, text, late):
    # Java's client asks for what was enqueued after it, although isInclusive says true.
    key = compact({"ehName": connector.hub, "partitionId": 1})
    time = f"{late:%Y-%m-%dT%H:%M:%S}.123Z"
    start = json.loads(text(p0=at(10), p2=at(30)))
    start[key] = {"offset": None, "seqNo": -1, "enqueuedTime": time, "isInclusive": True}
    assert connector.batch(startingPositions=compact(start)) == {"1": [22]}


def test_an_offset_that_is_not_inclusive_begins_behind_it(connector, text):
    start = text(p0=EventPosition.from_offset("4"), p1=at(20), p2=at(30))
    # Offsets in the local hub are counted in bytes; the first event has 0.
    read = connector.batch(startingPositions=start)
    assert set(read) == {"0"}
    assert read["0"] == [*range(read["0"][0], 10)]
    assert read["0"][0] > 0


def test_a_hub_in_another_case_would_be_the_end_of_every_partition(connector, folder):
    # Why the name is written as it was typed, and read with its case.
    given = {partition: at(0) for partition in PARTITIONS}
    lowered = StartingPositions(connector.hub.lower(), given).to_connector()
    assert spark_runs.stream(connector.frame(startingPositions=lowered), folder).read == {}


def test_a_partition_that_is_not_named_would_begin_at_its_end(connector):
    # Why every partition has to be given, and the new ones cannot be guessed from a store.
    named = StartingPositions(connector.hub, {"0": at(8), "1": at(18)}).to_connector()
    assert connector.batch(startingPositions=named) == {"0": [8, 9], "1": [18, 19]}
