"""The fast path under TLS, which gives out 16 KiB at a time, whatever has arrived."""

import pytest
from azure.eventhub import TransportType

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.batches import read_range
from waiting import LIMIT

SIZES = [0, 150, 16_384, 150, 2**20 - 99, 40_000, 3] * 9


@pytest.fixture
def hub():
    with LocalHub({"orders": 1}, tls=True) as running:
        yield running


@pytest.fixture
def address(hub):
    return HubAddress.from_credential(
        hub.namespace,
        "orders",
        "SharedAccessKeyName=n;SharedAccessKey=a2V5",
        custom_endpoint_address=hub.endpoint,
        transport_type=TransportType.Amqp,
        connection_verify=hub.ca_file,
    )


def bodies(address, begin, end):
    settings = ReadSettings(receive_path="fast", receiver_timeout=LIMIT)
    batches = read_range(address, OffsetRange("0", begin, end), settings)
    return [body for batch in batches for body in batch.column("body").to_pylist()]


def test_bodies_of_any_size_come_as_they_were_sent(hub, address):
    sent = [bytes([number]) * size for number, size in enumerate(SIZES)]
    hub.publish("orders", "0", sent)
    assert bodies(address, 1, 60) == sent[1:60]


def test_many_small_events_come(hub, address):
    sent = [number.to_bytes(4, "big") * 40 for number in range(20_000)]
    hub.publish("orders", "0", sent)
    assert bodies(address, 0, 20_000) == sent


def test_a_connection_that_breaks_is_replaced(hub, address):
    sent = [number.to_bytes(4, "big") * 40 for number in range(5000)]
    hub.publish("orders", "0", sent)
    settings = ReadSettings(receive_path="fast", receiver_timeout=LIMIT, rows_per_batch=500)
    found = []
    for batch in read_range(address, OffsetRange("0", 0, 5000), settings):
        found += batch.column("body").to_pylist()
        if len(found) in (1000, 3000):
            hub.drop_connections()
    assert found == sent
