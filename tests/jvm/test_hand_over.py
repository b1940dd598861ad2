"""From consumers to the connector and back, through a store: nothing is lost or read twice."""

import pytest

import spark_runs
from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.spark import EventPosition, StartingPositions, starting_positions
from eventhub_checkpoints.spark.publisher import CheckpointPublisher

EVERYTHING = {"0": [*range(10)], "1": [*range(20)], "2": [*range(30)]}
PARTITIONS = ["0", "1", "2", "3"]


@pytest.fixture
def store():
    return MemoryCheckpointStore()


@pytest.fixture
def from_the_start(connector):
    begin = EventPosition.from_start_of_stream()
    return StartingPositions(connector.hub, dict.fromkeys(PARTITIONS, begin)).to_connector()


def stored(store, scope):
    rows = store.list_checkpoints(*scope)
    return {row["partition_id"]: row["sequence_number"] for row in rows}


def merged(*parts):
    return spark_runs.sorted_numbers(
        (partition, number)
        for part in parts
        for partition, numbers in part.items()
        for number in numbers
    )


def test_a_stream_goes_on_where_a_consumer_stopped_and_a_consumer_where_it_stopped(
    connector, store, folder
):
    consumed = connector.consume(store, 25)
    positions = starting_positions(store, connector.scope, PARTITIONS).to_connector()
    with CheckpointPublisher(store, connector.scope) as publisher:
        publisher.attach(connector.spark)
        streamed = spark_runs.stream(connector.frame(startingPositions=positions), folder)
    assert streamed.error is None
    assert merged(consumed, streamed.read) == EVERYTHING
    assert stored(store, connector.scope) == {"0": 9, "1": 19, "2": 29}
    for partition in PARTITIONS:
        connector.server.publish(connector.hub, partition, ["new"])
    assert connector.consume(store, 4) == {"0": [10], "1": [20], "2": [30], "3": [0]}


def test_with_an_observation_the_checkpoints_carry_the_offsets_too(
    connector, store, folder, from_the_start
):
    with CheckpointPublisher(store, connector.scope) as publisher:
        publisher.attach(connector.spark)
        frame = connector.frame(startingPositions=from_the_start, through=publisher.observe)
        assert spark_runs.stream(frame, folder).read == EVERYTHING
    rows = {row["partition_id"]: row for row in store.list_checkpoints(*connector.scope)}
    for partition in EVERYTHING:
        last = connector.server.partition_properties(connector.hub, partition)
        assert rows[partition]["sequence_number"] == last.last_sequence_number
        assert rows[partition]["offset"] == last.last_offset


def test_what_a_crash_kept_from_the_store_is_caught_up_from_the_folder(
    connector, store, folder, from_the_start
):
    spark_runs.stream(connector.frame(startingPositions=from_the_start), folder)
    assert stored(store, connector.scope) == {}
    with CheckpointPublisher(store, connector.scope) as publisher:
        publisher.catch_up(folder)
    assert stored(store, connector.scope) == {"0": 9, "1": 19, "2": 29}
