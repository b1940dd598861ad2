"""Positions that a hub has to be asked for, and the ends of batches."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore
from eventhub_checkpoints.receive import HubAddress, partition_properties
from eventhub_checkpoints.spark import (
    EndingPositions,
    EventPosition,
    StartingPositions,
    ending_positions,
    starting_positions,
)

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BOTH = pytest.mark.parametrize("positions_of", [starting_positions, ending_positions])


@pytest.fixture
def scope(address):
    return address.scope()


@pytest.fixture
def store(scope):
    store = MemoryCheckpointStore()
    for partition, number in {"0": 4, "2": 29}.items():
        row = {"partition_id": partition, "offset": str(number * 100), "sequence_number": number}
        store.update_checkpoint({**scope.as_dict(), **row})
    return store


@pytest.fixture
def client(hub, address):
    names = hub.client_arguments("Orders", address.fully_qualified_namespace)
    with EventHubConsumerClient(**names, consumer_group="$Default") as one:
        yield one


def numbers(positions):
    return {one: position.sequence_number for one, position in positions.positions.items()}


@BOTH
def test_the_partitions_are_asked_of_the_hub(positions_of, store, hub, address, client, scope):
    for given in (hub.connection_string("Orders"), address, client):
        found = positions_of(store, scope, hub=given)
        assert list(found.positions) == ["0", "1", "2", "3"]
        assert numbers(found) == {"0": 5, "1": None, "2": 30, "3": None}


@BOTH
def test_partition_ids_that_are_given_are_taken_without_asking(positions_of, store, scope):
    namespace, name, _ = scope
    key = "SharedAccessKeyName=n;SharedAccessKey=k"
    closed = {"custom_endpoint_address": "sb://127.0.0.1:1"}
    unreachable = HubAddress.from_credential(namespace, name, key, **closed)
    assert numbers(positions_of(store, scope, ["2"], hub=unreachable)) == {"2": 30}


@BOTH
def test_without_partitions_and_without_a_hub_both_ways_are_named(positions_of, store, scope):
    with pytest.raises(ConfigurationError, match=r"partition_ids is None; .* or hub="):
        positions_of(store, scope)


def test_the_hub_says_how_its_name_is_written(store, address, scope):
    folded = scope._replace(eventhub_name="orders")
    found = starting_positions(store, folded, hub=address)
    assert found.eventhub_name == "Orders"
    assert numbers(found)["0"] == 5


def test_checkpoints_of_another_hub_are_refused(store, address, scope):
    other = scope._replace(eventhub_name="Payments")
    with pytest.raises(ConfigurationError, match="has the hub 'Payments', and hub= has 'Orders'"):
        starting_positions(store, other, hub=address)


@BOTH
def test_checkpoints_of_another_namespace_are_refused(positions_of, store, scope, address, client):
    test = scope._replace(fully_qualified_namespace="test.servicebus.windows.net")
    for hub in (address, client):
        with pytest.raises(ConfigurationError, match=r"'test\.servic.*, and hub= has '127.*scope"):
            positions_of(store, test, hub=hub)
    assert numbers(positions_of(store, test, ["0"])) == {"0": None}


def test_a_client_that_does_not_show_its_namespace_is_believed(store, scope, client, monkeypatch):
    test = scope._replace(fully_qualified_namespace="test.servicebus.windows.net")
    monkeypatch.delattr(client, "_address")
    assert starting_positions(store, test, ["0"], hub=client).eventhub_name == "Orders"


def test_ends_are_exclusive_and_include_what_the_store_has(store, scope):
    found = ending_positions(store, scope, ["0", "1", "2"])
    assert isinstance(found, EndingPositions)
    assert numbers(found) == {"0": 5, "1": None, "2": 30}
    assert found.positions["1"] == EventPosition.from_start_of_stream()
    assert list(found.to_source()) == ["endingPositions"]


def test_kafka_cannot_end_at_the_earliest_event(store, address, scope):
    ends = ending_positions(store, scope, hub=address)
    with pytest.raises(ConfigurationError, match=r"partition 1 \(start of stream\), 3 \(start"):
        ends.to_kafka()
    assert ends.to_kafka(hub=address) == '{"Orders":{"0":5,"1":0,"2":30,"3":0}}'
    latest = ending_positions(store, scope, hub=address, missing="latest")
    assert latest.to_kafka() == '{"Orders":{"0":5,"1":-1,"2":30,"3":-1}}'


def test_a_batch_of_kafka_cannot_begin_at_the_latest_event(store, address, scope):
    starts = starting_positions(store, scope, hub=address, missing="latest")
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


def test_a_checkpoint_with_an_offset_only_is_resolved_by_one_event(
    hub, address, foreign_store, scope
):
    with EventHubConsumerClient(**hub.client_arguments("Orders"), consumer_group="g") as client:
        events = []

        def keep(_context, event):
            events.append(event)
            client.close()

        client.receive(keep, partition_id="0", starting_position="-1")
    row = {"partition_id": "0", "offset": events[0].offset, "sequence_number": None}
    found = starting_positions(foreign_store(row), scope, ["0"])
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


def test_numbers_are_resolved_without_asking_for_what_is_known(store, scope):
    nowhere = "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=Orders"
    found = starting_positions(store, scope, ["0", "1"])
    assert found.to_kafka(hub=nowhere) == '{"Orders":{"0":5,"1":-2}}'


def test_a_partition_that_the_hub_does_not_have_cannot_be_resolved(address):
    positions = StartingPositions("Orders", {"8": EventPosition.from_end_of_stream()})
    with pytest.raises(ConfigurationError, match="Orders has no partition 8; it has 0, 1, 2, 3"):
        positions.resolved(address)


def test_positions_follow_the_last_committed_events_and_name_every_partition():
    found = StartingPositions.after("Orders", {"10": 7, "0": 4}, ["0", "2", 10])
    assert list(found.positions) == ["0", "2", "10"]
    assert found.to_kafka() == '{"Orders":{"0":5,"2":-2,"10":8}}'
