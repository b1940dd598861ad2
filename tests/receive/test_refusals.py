"""What a hub refuses is an error of this package that names the hub, and is not waited out.

A silence that was waited out has another error, which says that nothing was delivered.
"""

import threading
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
from eventhub_checkpoints.receive.address import Stream
from eventhub_checkpoints.receive.amqp.events import EventStream
from eventhub_checkpoints.receive.batches import read_range
from waiting import LIMIT, eventually

PATHS = ("fast", "public", "auto")


def address_of(hub, group="$Default", **settings):
    return HubAddress.from_connection_string(hub.connection_string("orders"), group, **settings)


def refusal(address, expected, path, timeout=LIMIT, open_stream=None):
    """The error of a read."""
    settings = ReadSettings(receive_path=path, receiver_timeout=timeout)
    with pytest.raises(expected) as raised:
        list(read_range(address, OffsetRange("0", 0, 100), settings, open_stream))
    return raised.value


class Troubled(Stream):
    """A stream that is silent once there is a reason for it, however long that takes."""

    def __init__(self, stream):
        self._stream = stream

    @property
    def trouble(self):
        return self._stream.trouble

    def next(self, timeout):
        found = []

        def is_over():
            found[:] = [self._stream.next(0.05)]
            return found[0] or self.trouble

        eventually(is_over)
        return found[0]

    def close(self):
        self._stream.close()


def until_trouble(address):
    """`open_stream` of an address, for a reader whose patience ends with a reason only."""
    return lambda *args: Troubled(address.open_stream(*args))


@contextmanager
def held_by_epoch(hub, level):
    """Another receiver of partition 0, with an owner level."""
    client = EventHubConsumerClient.from_connection_string(
        hub.connection_string("orders"), "$Default", load_balancing_interval=0.1
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
    assert attached.wait(LIMIT)
    yield
    client.close()
    receiver.join(LIMIT)


@pytest.mark.parametrize("path", PATHS)
def test_a_partition_held_by_another_epoch_is_reported(hub, path):
    with held_by_epoch(hub, 5):
        error = refusal(address_of(hub), HubUnavailableError, path)
    assert str(error).startswith(f"partition 0 of {address_of(hub)} is held by another receiver")
    assert "higher epoch '5'" in str(error)
    assert "consumerGroup" in str(error)
    assert "checkpointConsumerGroup" in str(error)
    assert isinstance(error.__cause__, EventHubError)


@pytest.mark.parametrize("path", PATHS)
def test_a_reader_displaced_by_an_epoch_reports_it(hub, path):
    settings = ReadSettings(receive_path=path, rows_per_batch=10, prefetch=10)
    with address_of(hub).open_stream("0", 0, 10_000, settings) as stream:
        assert stream.next(LIMIT)
        assert hub.detach_receivers(
            "orders", condition="amqp:link:stolen", description="a newcomer has epoch '7'"
        )
        with pytest.raises(HubUnavailableError, match=r"held by another receiver .*epoch '7'"):
            list(iter(lambda: stream.next(LIMIT), None))


@pytest.mark.parametrize("path", ["fast", "public"])
def test_an_owner_level_displaces_a_lower_one_and_is_displaced_by_its_equal(hub, path):
    settings = ReadSettings(receive_path=path, rows_per_batch=10, prefetch=10, owner_level=5)
    address = address_of(hub)
    with held_by_epoch(hub, 4), address.open_stream("0", 0, 10_000, settings) as stream:
        assert stream.next(LIMIT)
        assert [each.epoch for each in hub.receivers("orders")] == [5]
        error = refusal(address, HubUnavailableError, path)
        assert "higher epoch '5'" in str(error)
        with held_by_epoch(hub, 5), pytest.raises(HubUnavailableError) as raised:
            list(iter(lambda: stream.next(LIMIT), None))
    assert str(raised.value).startswith(
        f"partition 0 of {address} is held by another receiver in consumer group '$Default' that "
        "has an equal or higher owner level"
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_consumer_group_that_is_not_there_is_named(hub_of_one_group, path):
    error = refusal(address_of(hub_of_one_group, "absent"), ConfigurationError, path)
    assert "no consumer group 'absent'" in str(error)


@contextmanager
def five_readers(hub):
    """As many receivers without an owner level as the service allows."""
    with ExitStack() as stack:
        for _ in range(5):
            stream = address_of(hub).open_stream("0", 0, 100, ReadSettings(receive_path="fast"))
            stack.enter_context(stream)
            assert stream.next(LIMIT)
        yield


@pytest.mark.parametrize("path", ["fast", "public"])
def test_the_last_refusal_explains_a_silence_that_is_shorter_than_the_retries(hub, path):
    patient = address_of(hub)

    with five_readers(hub):
        error = refusal(patient, HubUnavailableError, path, open_stream=until_trouble(patient))
    assert "Exceeded the maximum number of allowed receivers" in str(error)


def test_a_refusal_that_stays_is_ours_after_the_retries(hub):
    brief = address_of(hub, retry_total=1)
    with five_readers(hub):
        error = refusal(brief, HubUnavailableError, "fast")
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
        stream.next(LIMIT)
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
        address = address_of(hub)
        patient = until_trouble(address)
        for batch in read_range(address, OffsetRange("0", 0, 100), settings, patient):
            found.extend(batch["sequenceNumber"].to_pylist())

    with pytest.raises((ConfigurationError, HubUnavailableError)) as raised:
        read()
    assert found == [*range(50)]
    assert "event 50 of partition 0" in str(raised.value)
    assert "cannot be decoded" in str(raised.value)
    assert "group" not in str(raised.value)


def test_an_event_that_no_decoder_takes_is_the_reason_whatever_the_client_says(hub, monkeypatch):
    spoil(hub, 0)
    trouble = property(lambda _: "'NoneType' object is not callable")
    monkeypatch.setattr(EventStream, "trouble", trouble)
    address = address_of(hub)
    patient = until_trouble(address)
    error = refusal(address, HubUnavailableError, "auto", open_stream=patient)
    assert "event 0 of partition 0, or the next one, cannot be decoded" in str(error)
    assert "NoneType" not in str(error)


def test_a_client_that_repeats_events_for_ever_is_silence(hub):
    spoil(hub, 50)
    error = refusal(address_of(hub), HubUnavailableError, "public", timeout=1.0)
    assert "sequence number 50" in str(error) or "nothing to consumer group" in str(error)
