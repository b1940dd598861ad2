import pickle
import socket
import threading
from dataclasses import replace

import pytest
from azure.eventhub import EventData, EventHubProducerClient, TransportType

from eventhub_checkpoints import ConfigurationError
from eventhub_checkpoints.receive import (
    DataLossError,
    HubAddress,
    HubUnavailableError,
    OffsetRange,
    ReadSettings,
)
from eventhub_checkpoints.receive.batches import read_range
from waiting import LIMIT, eventually

PATIENT = ReadSettings(receiver_timeout=LIMIT, operation_timeout=LIMIT)
BRIEF = ReadSettings(receiver_timeout=0.2)
"""For ranges that hold nothing: whatever is slow, their silence is what the hub explains."""
GO_ON = replace(BRIEF, fail_on_data_loss=False)
PIECEMEAL = ReadSettings(rows_per_batch=10, prefetch=10)
"""The receiver waits for its reader before it comes to the end of a range of a hundred events."""


@pytest.fixture(autouse=True, params=["fast", "public"])
def path(request, monkeypatch):
    """Every test here is of both paths, and not of the one that falls back to the other."""
    opened = HubAddress.open_stream

    def by_path(self, partition_id, start, until, settings):
        settings = replace(settings, receive_path=request.param)
        return opened(self, partition_id, start, until, settings)

    monkeypatch.setattr(HubAddress, "open_stream", by_path)
    return request.param


def numbers(address, begin, end, settings=PATIENT, partition="0", open_stream=None):
    batches = read_range(address, OffsetRange(partition, begin, end), settings, open_stream)
    return [number for batch in batches for number in batch.column("sequenceNumber").to_pylist()]


@pytest.mark.parametrize(("begin", "end"), [(0, 100), (40, 60), (99, 100), (0, 1)])
def test_exactly_the_events_of_the_range_are_read(address, begin, end):
    assert numbers(address, begin, end) == list(range(begin, end))


def test_an_empty_range_asks_nobody():
    nowhere = HubAddress("nowhere.invalid", "orders", "$Default", "Endpoint=sb://nowhere.invalid")
    assert numbers(nowhere, 5, 5) == []


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(ConfigurationError, match="until_sequence_number is 4; expected 5 or more"):
        OffsetRange("0", 5, 4)


def test_events_that_arrive_later_are_waited_for(hub, address):
    late = threading.Timer(0.2, hub.publish, ("orders", "1", ["late"]))
    late.start()
    assert numbers(address, 0, 1, partition="1") == [0]
    late.join()


def test_batches_hold_as_many_rows_as_asked(address):
    batches = read_range(address, OffsetRange("0", 0, 100), ReadSettings(rows_per_batch=30))
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 10]


def test_large_events_make_smaller_batches(hub, address):
    hub.publish("orders", "1", [bytes(9 * 2**20)] * 3)
    batches = read_range(address, OffsetRange("1", 0, 3), ReadSettings())
    assert [batch.num_rows for batch in batches] == [2, 1]


def test_all_columns_come_from_what_a_real_producer_sent(hub, address):
    event = EventData(b"body")
    event.properties = {"text": "x", "number": 5, "flag": True}
    event.content_type = "text/plain"
    with EventHubProducerClient.from_connection_string(hub.connection_string("orders")) as client:
        batch = client.create_batch(partition_id="1")
        batch.add(event)
        client.send_batch(batch)
    [read] = read_range(address, OffsetRange("1", 0, 1), PATIENT)
    [row] = read.to_pylist()
    stored = hub.partition_properties("orders", "1")
    assert row["body"] == b"body"
    assert row["partition"] == "1"
    assert row["offset"] == stored.last_offset
    assert row["enqueuedTime"].timestamp() == stored.last_enqueued_time
    assert dict(row["properties"]) == {"text": "x", "number": "5", "flag": "true"}
    assert dict(row["systemProperties"])["content-type"] == "text/plain"


def test_the_connection_is_closed_when_the_reader_stops_early(hub, address):
    reading = read_range(address, OffsetRange("0", 0, 100), PIECEMEAL)
    assert next(reading).num_rows == 10
    assert hub.receivers("orders")
    reading.close()
    eventually(lambda: not hub.receivers("orders"))


def test_a_range_is_read_over_one_connection(address, monkeypatch):
    made, connect = [], socket.socket.connect
    monkeypatch.setattr(
        socket.socket, "connect", lambda self, to: (made.append(to), connect(self, to))[1]
    )
    assert numbers(address, 0, 100) == list(range(100))
    assert len(made) == 1


def test_the_receiver_has_no_owner_level(hub, address):
    reading = read_range(address, OffsetRange("0", 0, 100), PIECEMEAL)
    next(reading)
    assert [receiver.epoch for receiver in hub.receivers("orders")] == [None]
    reading.close()


@pytest.mark.parametrize("disturb", ["drop_connections", "detach_receivers"])
def test_after_a_reconnect_no_event_is_lost_or_read_twice(hub, address, disturb):
    found = []
    settings = ReadSettings(rows_per_batch=10, prefetch=10, receiver_timeout=LIMIT)
    for batch in read_range(address, OffsetRange("0", 0, 100), settings):
        found += batch.column("sequenceNumber").to_pylist()
        if len(found) in (20, 50):
            if disturb == "drop_connections":
                hub.drop_connections()
            else:
                hub.detach_receivers("orders")
    assert found == list(range(100))


def test_expired_events_fail_with_partition_wanted_and_first(hub, address):
    hub.trim("orders", "0", before=30)
    with pytest.raises(DataLossError, match=r"number 10 has expired.* 30, so 20") as caught:
        numbers(address, 10, 50)
    assert pickle.loads(pickle.dumps(caught.value)).first_retained == 30


def test_expired_events_are_passed_over_when_that_is_wanted(hub, address, caplog):
    hub.trim("orders", "0", before=30)
    settings = replace(PATIENT, fail_on_data_loss=False)
    assert numbers(address, 10, 50, settings) == list(range(30, 50))
    assert "20 events are lost" in caplog.text


def test_a_range_that_has_expired_whole_is_not_waited_for(hub, address):
    hub.trim("orders", "0")
    with pytest.raises(DataLossError, match="has expired"):
        numbers(address, 10, 50, BRIEF)
    assert numbers(address, 10, 50, GO_ON) == []


def test_a_recreated_hub_is_distinguished_from_an_outage(hub, address, patient_until):
    hub.recreate("orders")
    hub.publish("orders", "0", ["new"] * 5)
    with pytest.raises(DataLossError, match="deleted and created again"):
        numbers(address, 50, 60, BRIEF)
    assert numbers(address, 3, 60, GO_ON, open_stream=patient_until(address, 4)) == [3, 4]


def test_a_consumer_group_that_does_not_exist_is_not_an_empty_range(hub_of_one_group):
    string = hub_of_one_group.connection_string("orders")
    absent = HubAddress.from_connection_string(string, "absent")
    # The fast path reports what the hub answers; the client's public API hides it.
    with pytest.raises((ConfigurationError, HubUnavailableError), match="consumer group 'absent'"):
        numbers(absent, 0, 100, GO_ON)
    assert "amqp:not-found" in {link.condition for link in hub_of_one_group.refused_links()}
    known = HubAddress.from_connection_string(string, "known")
    assert numbers(known, 0, 100) == list(range(100))


def test_a_partition_that_does_not_exist_is_named(hub):
    # One attempt: the client's own retries take 13 s.
    once = HubAddress.from_connection_string(hub.connection_string("orders"), retry_total=0)
    with pytest.raises((ConfigurationError, HubUnavailableError), match=r"'orders'|partition 7"):
        numbers(once, 0, 1, partition="7")


def test_a_custom_endpoint_is_reached_under_the_real_name(hub):
    string = hub.connection_string("orders").split(";", 1)[1]
    address = HubAddress.from_connection_string(
        f"Endpoint=sb://ns.servicebus.windows.net/;{string}",
        custom_endpoint_address=hub.endpoint,
        use_tls=False,
        transport_type=TransportType.Amqp,
    )
    address = pickle.loads(pickle.dumps(address))
    assert address.scope().fully_qualified_namespace == "ns.servicebus.windows.net"
    assert numbers(address, 98, 100) == [98, 99]
