"""The hub as a program holds it."""

import gc
import socket
import threading
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient

from eventhub_checkpoints.localhub import LocalHub
from ports import kept_port


def test_a_connection_string_is_enough_for_a_client(hub):
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), consumer_group="$Default", retry_total=0
    )
    with client:
        assert client.get_partition_ids() == ["0", "1"]


def test_the_namespace_stays_the_same_on_any_port():
    for _ in range(2):
        with LocalHub({"orders": 1}) as hub:
            arguments = hub.client_arguments("orders", namespace="mine.servicebus.windows.net")
            assert arguments["custom_endpoint_address"] == f"sb://127.0.0.1:{hub.port}"
            client = EventHubConsumerClient(**arguments, consumer_group="$Default", retry_total=0)
            assert client._address.hostname == "mine.servicebus.windows.net"
            with client:
                assert client.get_partition_ids() == ["0"]
    assert LocalHub({"orders": 1}).namespace == "localhub.servicebus.windows.net"


def test_tls_with_an_authority_of_its_own(read):
    with LocalHub({"orders": 1}, tls=True) as hub:
        ca_file = hub.ca_file
        hub.publish("orders", "0", [b"secret"])
        reading = read(hub, partition_id="0")
        assert reading.wait(1)[0].body_as_str() == "secret"
        with pytest.raises(RuntimeError, match="5671"):
            hub.connection_string("orders")
    assert not Path(ca_file).exists()


def test_without_tls_there_is_no_authority(hub):
    with pytest.raises(RuntimeError, match="tls=True"):
        _ = hub.ca_file


def test_without_openssl_tls_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", "")
    hub = LocalHub({"orders": 1}, tls=True)
    with pytest.raises(RuntimeError, match="openssl"):
        hub.start()
    hub.stop()


def test_publishing_returns_the_sequence_numbers(hub):
    assert hub.publish("orders", "0", ["a", b"b"]) == range(2)
    assert hub.publish("orders", "0", []) == range(2, 2)
    assert hub.publish("orders", "0", (str(n) for n in range(3))) == range(2, 5)


def test_times_never_go_back(hub):
    late = datetime(2030, 1, 1, tzinfo=UTC)
    hub.publish("orders", "0", [b"x"], enqueued_time=late)
    hub.publish("orders", "0", [b"x"], enqueued_time=5.0)
    found = hub.partition_properties("orders", "0")
    assert found.last_enqueued_time == late.timestamp()


def test_properties_before_the_first_event_and_after_the_last_one_expired(hub):
    before = hub.partition_properties("orders", "0")
    assert (before.first_sequence_number, before.last_sequence_number) == (0, -1)
    assert (before.last_offset, before.last_enqueued_time, before.is_empty) == ("-1", 0, True)
    hub.publish("orders", "0", [b"x"] * 3)
    hub.publish("orders", "1", [b"x"] * 2)
    assert hub.trim("orders") == 5
    after = hub.partition_properties("orders", "0")
    assert (after.first_sequence_number, after.last_sequence_number) == (3, 2)
    assert after.is_empty
    assert hub.publish("orders", "0", [b"x"]) == range(3, 4)


def test_events_can_be_published_from_many_threads_at_once(hub):
    def publish():
        for _ in range(50):
            numbers.extend(hub.publish("orders", "0", [b"x"] * 3))

    numbers = []
    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(600))


def test_hubs_come_and_go(hub):
    hub.create("other", 3)
    assert hub.partition_ids("other") == ["0", "1", "2"]
    hub.recreate("other", partitions=1)
    assert hub.partition_ids("OTHER") == ["0"]
    hub.delete("other")
    with pytest.raises(LookupError, match="there are: orders"):
        hub.partition_ids("other")


def test_a_hub_that_exists_is_not_created_again(hub):
    hub.publish("orders", "0", ["kept"])
    with pytest.raises(ValueError, match="hub 'Orders' exists already; call recreate"):
        hub.create("Orders", 1)
    assert hub.partition_properties("orders", "0").last_sequence_number == 0


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (lambda hub: hub.publish("nowhere", "0", [b"x"]), "there is no hub 'nowhere'"),
        (lambda hub: hub.publish("orders", "2", [b"x"]), "no partition '2'; it has '0' to '1'"),
        (lambda hub: hub.trim("orders", "x"), "no partition 'x'"),
        (lambda hub: hub.recreate("nowhere"), "there is no hub"),
        (lambda hub: hub.delete("nowhere"), "there is no hub"),
        (lambda hub: hub.detach_receivers("nowhere"), "there is no hub"),
        (lambda hub: hub.connection_string("nowhere"), "there is no hub"),
        (lambda hub: hub.partition_ids(None), "there is no hub None"),
    ],
)
def test_what_does_not_exist_is_a_lookup_error(hub, action, reason):
    with pytest.raises(LookupError, match=reason):
        action(hub)


def test_a_hub_that_does_not_run_says_so():
    hub = LocalHub({"orders": 1})
    hub.stop()
    for action in (lambda: hub.port, lambda: hub.publish("orders", "0", [b"x"])):
        with pytest.raises(RuntimeError, match="not running"):
            action()


def test_a_second_start_is_refused_and_a_restart_keeps_port_and_events():
    with kept_port() as port:
        hub = LocalHub({"orders": 1}, port=port).start()
        with pytest.raises(RuntimeError, match="running already"):
            hub.start()
        hub.publish("orders", "0", [b"x"])
        hub.stop()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with hub:
            assert hub.port == port
            assert hub.partition_properties("orders", "0").last_sequence_number == 0


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind(hub):
    before = set(threading.enumerate())
    with pytest.raises(OSError, match=f"host '127.0.0.1', port {hub.port}: .* in use"):
        LocalHub({"orders": 1}, port=hub.port).start()
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("host", ["nowhere.invalid", "two..dots", "x" * 64])
def test_a_host_that_cannot_be_had_is_named(host):
    with pytest.raises((OSError, ValueError), match=f"'{host}'"):
        LocalHub({"orders": 1}, host=host).start()


@pytest.mark.parametrize(("tls", "rounds"), [(False, 20), (True, 5)])
def test_what_comes_in_while_it_stops_is_closed(tls, rounds):
    gc.collect()  # what the tests before have left is not counted
    with warnings.catch_warnings(record=True, category=ResourceWarning) as left_open:
        warnings.simplefilter("always")
        for _ in range(rounds):
            with LocalHub({"orders": 1}, tls=tls) as hub:
                dialled = [socket.create_connection((hub.host, hub.port)) for _ in range(8)]
            for connection in dialled:
                connection.close()
        gc.collect()
    assert [str(warning.message) for warning in left_open] == []


def test_what_is_stored_is_shown_as_it_was_sent(hub):
    event = EventData(b"\xff")
    event.properties = {"n": 1}
    with EventHubProducerClient(**hub.client_arguments("orders"), retry_total=0) as client:
        client.send_event(event, partition_id="1")
    hub.publish("orders", "0", ["é"], partition_key="key", enqueued_time=1_700_000_000.5)
    published, sent = hub.events("orders")
    assert (published.body_as_str(), published.properties, published.partition_key) == (
        "é",
        {},
        "key",
    )
    assert (published.partition_id, published.enqueued_time) == ("0", 1_700_000_000.5)
    assert (sent.body, sent.properties, sent.partition_key) == (b"\xff", {"n": 1}, None)
    assert hub.events("orders", "1") == [sent]
    hub.trim("orders")
    assert hub.events("orders") == []
    for wrong in [("x", None), ("orders", "7")]:
        with pytest.raises(LookupError):
            hub.events(*wrong)
