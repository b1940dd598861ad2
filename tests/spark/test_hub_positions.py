"""Positions that a hub has to be asked for, and the ends of batches."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, Scope
from eventhub_checkpoints.receive import HubAddress, partition_properties
from eventhub_checkpoints.spark import (
    EndingPositions,
    EventPosition,
    StartingPositions,
    ending_positions,
    starting_positions,
)

SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BOTH = pytest.mark.parametrize("positions_of", [starting_positions, ending_positions])


@pytest.fixture
def store():
    store = MemoryCheckpointStore()
    for partition, number in {"0": 4, "2": 29}.items():
        row = {"partition_id": partition, "offset": str(number * 100), "sequence_number": number}
        store.update_checkpoint({**SCOPE.as_dict(), **row})
    return store


@pytest.fixture
def address(hub):
    return HubAddress.from_connection_string(hub.connection_string("Orders"))


@pytest.fixture
def client(hub):
    with EventHubConsumerClient(**hub.client_arguments("Orders"), consumer_group="$Default") as one:
        yield one


def numbers(positions):
    return {one: position.sequence_number for one, position in positions.positions.items()}


@BOTH
def test_the_partitions_are_asked_of_the_hub(positions_of, store, hub, address, client):
    for given in (hub.connection_string("Orders"), address, client):
        found = positions_of(store, SCOPE, hub=given)
        assert list(found.positions) == ["0", "1", "2", "3"]
        assert numbers(found) == {"0": 5, "1": None, "2": 30, "3": None}


@BOTH
def test_partition_ids_that_are_given_are_taken_without_asking(positions_of, store):
    nowhere = "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=Orders"
    assert numbers(positions_of(store, SCOPE, ["2"], hub=nowhere)) == {"2": 30}


@BOTH
def test_without_partitions_and_without_a_hub_both_ways_are_named(positions_of, store):
    with pytest.raises(ConfigurationError, match=r"partition_ids is None; .* or hub="):
        positions_of(store, SCOPE)


def test_the_hub_says_how_its_name_is_written(store, address):
    folded = Scope(SCOPE.fully_qualified_namespace, "orders", "$Default")
    found = starting_positions(store, folded, hub=address)
    assert found.eventhub_name == "Orders"
    assert numbers(found)["0"] == 5


def test_checkpoints_of_another_hub_are_refused(store, address):
    other = Scope(SCOPE.fully_qualified_namespace, "Payments", "$Default")
    with pytest.raises(ConfigurationError, match="hub 'Payments', and hub= is 'Orders'"):
        starting_positions(store, other, hub=address)


def test_ends_are_exclusive_and_include_what_the_store_has(store):
    found = ending_positions(store, SCOPE, ["0", "1", "2"])
    assert isinstance(found, EndingPositions)
    assert numbers(found) == {"0": 5, "1": None, "2": 30}
    assert found.positions["1"] == EventPosition.from_start_of_stream()
    assert list(found.to_source()) == ["endingPositions"]


def test_kafka_cannot_end_at_the_earliest_event(store, address):
    ends = ending_positions(store, SCOPE, hub=address)
    with pytest.raises(ConfigurationError, match=r"partition 1 \(start of stream\), 3 \(start"):
        ends.to_kafka()
    assert ends.to_kafka(hub=address) == '{"Orders":{"0":5,"1":0,"2":30,"3":0}}'
    latest = ending_positions(store, SCOPE, hub=address, missing="latest")
    assert latest.to_kafka() == '{"Orders":{"0":5,"1":-1,"2":30,"3":-1}}'


def test_a_batch_of_kafka_cannot_begin_at_the_latest_event(store, address):
    starts = starting_positions(store, SCOPE, hub=address, missing="latest")
    assert starts.to_kafka() == '{"Orders":{"0":5,"1":-1,"2":30,"3":-1}}'
    with pytest.raises(ConfigurationError, match=r"partition 1 \(end of stream\)"):
        starts.to_kafka(batch=True)
    resolved = '{"Orders":{"0":5,"1":20,"2":30,"3":0}}'
    assert starts.to_kafka(batch=True, hub=address) == resolved


@pytest.mark.parametrize("hub_as", ["connection string", "address"])
def test_kafka_is_given_the_numbers_of_times_and_offsets(hub, address, hub_as):
    held = partition_properties(address, ["0"])["0"]
    positions = StartingPositions(
        "Orders",
        {
            "0": EventPosition.from_offset(held.last_enqueued_offset),
            "1": EventPosition.from_enqueued_time(LONG_AGO),
            "2": EventPosition.from_enqueued_time(datetime.now(UTC) + timedelta(days=1)),
            "3": EventPosition.from_start_of_stream(),
        },
    )
    with pytest.raises(ConfigurationError, match=r"partition 0 .*, 1 .*, 2 .*hub="):
        positions.to_kafka()
    given = hub.connection_string("Orders") if hub_as == "connection string" else address
    assert positions.to_kafka(hub=given) == '{"Orders":{"0":10,"1":0,"2":30,"3":-2}}'


def test_a_checkpoint_with_an_offset_only_is_resolved_by_one_event(hub, address, foreign_store):
    with EventHubConsumerClient(**hub.client_arguments("Orders"), consumer_group="g") as client:
        events = []

        def keep(_context, event):
            events.append(event)
            client.close()

        client.receive(keep, partition_id="0", starting_position="-1")
    row = {"partition_id": "0", "offset": events[0].offset, "sequence_number": None}
    found = starting_positions(foreign_store(row), SCOPE, ["0"])
    assert found.to_kafka(hub=address) == '{"Orders":{"0":1}}'
    assert numbers(found.resolved(address)) == {"0": 1}


def test_a_client_tells_ends_and_is_not_used_to_receive(client):
    last = client.get_partition_properties("0")["last_enqueued_offset"]
    at_ends = StartingPositions(
        "Orders",
        {"0": EventPosition.from_offset(str(last)), "1": EventPosition.from_end_of_stream()},
    )
    assert numbers(at_ends.resolved(client)) == {"0": 10, "1": 20}
    inside = StartingPositions("Orders", {"1": EventPosition.from_enqueued_time(LONG_AGO)})
    with pytest.raises(ConfigurationError, match=r"partition 1 \(time 2020.*connection string"):
        inside.to_kafka(hub=client)


def test_numbers_are_resolved_without_asking_for_what_is_known(store):
    nowhere = "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=Orders"
    found = starting_positions(store, SCOPE, ["0", "1"])
    assert found.to_kafka(hub=nowhere) == '{"Orders":{"0":5,"1":-2}}'


def test_a_partition_that_the_hub_does_not_have_cannot_be_resolved(address):
    positions = StartingPositions("Orders", {"8": EventPosition.from_end_of_stream()})
    with pytest.raises(ConfigurationError, match="Orders has no partition 8; it has 0, 1, 2, 3"):
        positions.resolved(address)


def test_positions_follow_the_last_committed_events_and_name_every_partition():
    found = StartingPositions.after("Orders", {"10": 7, "0": 4}, ["0", "2", 10])
    assert list(found.positions) == ["0", "2", "10"]
    assert found.to_kafka() == '{"Orders":{"0":5,"2":-2,"10":8}}'
