"""What a hub refuses is an error of this package that names the hub, and comes soon."""

import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive import (
    HubAddress,
    OffsetRange,
    ReadSettings,
    list_partitions,
    partition_properties,
)
from eventhub_checkpoints.receive.batches import read_range

PATHS = ("fast", "public", "auto")


def address_of(hub, group="$Default", **settings):
    return HubAddress.from_connection_string(hub.connection_string("orders"), group, **settings)


def refusal(address, expected, path, timeout=20.0):
    """The error of a read, and how many seconds it took."""
    settings = ReadSettings(receive_path=path, receiver_timeout=timeout)
    began = time.monotonic()
    with pytest.raises(expected) as raised:
        list(read_range(address, OffsetRange("0", 0, 100), settings))
    return raised.value, time.monotonic() - began


@contextmanager
def held_by_epoch(hub, level):
    """Another receiver of partition 0, with an owner level."""
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), "$Default", load_balancing_interval=0.5
    )
    attached = threading.Event()

    def receive():
        client.receive_batch(
            lambda *_: attached.set(),
            partition_id="0",
            owner_level=level,
            starting_position="-1",
        )

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    assert attached.wait(10)
    yield
    client.close()
    receiver.join(10)


@pytest.mark.parametrize("path", PATHS)
def test_a_partition_held_by_another_epoch_is_reported_soon(hub, path):
    with held_by_epoch(hub, 5):
        error, seconds = refusal(address_of(hub), HubUnavailableError, path)
    assert str(error).startswith(f"partition 0 of {address_of(hub)} is held by another receiver")
    assert "higher epoch '5'" in str(error)
    assert "consumerGroup" in str(error)
    assert "checkpointConsumerGroup" in str(error)
    assert isinstance(error.__cause__, EventHubError)
    assert seconds < 15


@pytest.mark.parametrize("path", PATHS)
def test_a_reader_displaced_by_an_epoch_reports_it_soon(hub, path):
    settings = ReadSettings(receive_path=path, rows_per_batch=10, prefetch=10)
    with address_of(hub).open_stream("0", 0, 10_000, settings) as stream:
        assert stream.next(10)
        assert hub.detach_receivers(
            "orders", condition="amqp:link:stolen", description="a newcomer has epoch '7'"
        )
        began = time.monotonic()
        with pytest.raises(HubUnavailableError, match=r"held by another receiver .*epoch '7'"):
            list(iter(lambda: stream.next(10), None))
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("path", ["fast", "public"])
def test_an_owner_level_displaces_a_lower_one_and_is_displaced_by_its_equal(hub, path):
    settings = ReadSettings(receive_path=path, rows_per_batch=10, prefetch=10, owner_level=5)
    address = address_of(hub)
    with held_by_epoch(hub, 4), address.open_stream("0", 0, 10_000, settings) as stream:
        assert stream.next(10)
        assert [each.epoch for each in hub.receivers("orders")] == [5]
        error, _ = refusal(address, HubUnavailableError, path)
        assert "higher epoch '5'" in str(error)
        with held_by_epoch(hub, 5), pytest.raises(HubUnavailableError) as raised:
            list(iter(lambda: stream.next(10), None))
    assert str(raised.value).startswith(
        f"partition 0 of {address} is held by another receiver in consumer group '$Default' that "
        "has an equal or higher owner level"
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_consumer_group_that_is_not_there_is_named_soon(hub_of_one_group, path):
    error, seconds = refusal(address_of(hub_of_one_group, "absent"), ConfigurationError, path)
    assert "no consumer group 'absent'" in str(error)
    assert seconds < 15


@contextmanager
def five_readers(hub):
    """As many receivers without an owner level as the service allows."""
    with ExitStack() as stack:
        for _ in range(5):
            stream = address_of(hub).open_stream("0", 0, 100, ReadSettings(receive_path="fast"))
            stack.enter_context(stream)
            assert stream.next(10)
        yield


@pytest.mark.parametrize(("path", "timeout"), [("fast", 0.6), ("public", 2.0)])
def test_the_last_refusal_explains_a_silence_that_is_shorter_than_the_retries(hub, path, timeout):
    patient = address_of(hub, retry_total=50, retry_backoff_factor=0.05, retry_backoff_max=0.05)
    with five_readers(hub):
        error, _ = refusal(patient, HubUnavailableError, path, timeout=timeout)
    assert "Exceeded the maximum number of allowed receivers" in str(error)


def test_a_refusal_that_stays_is_ours_after_the_retries(hub):
    brief = address_of(hub, retry_total=1, retry_backoff_factor=0.01)
    with five_readers(hub):
        error, _ = refusal(brief, HubUnavailableError, "fast")
    assert str(error).startswith(f"partition 0 of {brief} cannot be read: Exceeded the maximum")
    assert isinstance(error.__cause__, EventHubError)


@pytest.mark.parametrize(
    "ask",
    [list_partitions, partition_properties, lambda address: partition_properties(address, ["0"])],
)
def test_a_wrong_key_is_named_as_what_it_is(hub, ask):
    hub.refuse_tokens()
    address = address_of(hub, retry_total=0)
    with pytest.raises(ConfigurationError) as raised:
        ask(address)
    hub.refuse_tokens(False)
    assert str(raised.value).startswith(f"{address.fully_qualified_namespace} refuses")
    assert "'orders'" in str(raised.value)
    assert "key" in str(raised.value)
    assert "any-key-will-do" not in str(raised.value)


@pytest.mark.parametrize("path", ["fast", "public"])
def test_a_key_that_is_refused_while_reading_is_named_too(hub, path):
    settings = ReadSettings(receive_path=path)
    hub.refuse_tokens()
    with (
        address_of(hub, retry_total=0).open_stream("0", 0, 100, settings) as stream,
        pytest.raises(ConfigurationError, match="refuses access to event hub 'orders'"),
    ):
        stream.next(10)
    hub.refuse_tokens(False)


# An event that nobody can decode


def spoil(hub, number):
    """Put an event into partition 0 whose body has a constructor that AMQP does not know."""

    def work(server):
        log = server.find("orders").partition("0")
        payload = log.payloads[number]
        data = payload.index(b"\x00\x53\x75")
        log.payloads[number] = payload[:data] + b"\x00\x53\x75\x3f"

    hub._call(work)


@pytest.mark.parametrize("path", ["fast", "auto"])
def test_an_event_that_no_decoder_takes_is_named_and_not_the_group(hub, path):
    spoil(hub, 50)
    settings = ReadSettings(receive_path=path, receiver_timeout=1.0, rows_per_batch=10)
    found = []

    def read():
        for batch in read_range(address_of(hub), OffsetRange("0", 0, 100), settings):
            found.extend(batch["sequenceNumber"].to_pylist())

    with pytest.raises((ConfigurationError, HubUnavailableError)) as raised:
        read()
    assert found == [*range(50)]
    assert "event 50 of partition 0" in str(raised.value)
    assert "cannot be decoded" in str(raised.value)
    assert "group" not in str(raised.value)


def test_a_client_that_repeats_events_for_ever_is_silence(hub):
    spoil(hub, 50)
    error, seconds = refusal(address_of(hub), HubUnavailableError, "public", timeout=1.0)
    assert "sequence number 50" in str(error) or "nothing to consumer group" in str(error)
    assert seconds < 15
