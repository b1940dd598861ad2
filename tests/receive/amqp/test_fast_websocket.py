"""The fast path over WebSockets, which go through where only HTTPS does."""

import pytest
from azure.eventhub import TransportType

from eventhub_checkpoints.receive import HubAddress, OffsetRange, ReadSettings
from eventhub_checkpoints.receive.batches import read_range
from waiting import LIMIT
from websocket_gate import WebSocketGate


@pytest.mark.parametrize("message_size", [7, 4999, 70_000])
def test_exactly_the_range_comes_over_a_websocket(hub, message_size):
    sizes = [10, 0, min(40 * message_size, 200_000), 5] * 8
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    hub.publish("orders", "1", bodies)
    string = hub.connection_string("orders").split(";", 1)[1]
    with WebSocketGate(hub.port, message_size=message_size) as gate:
        address = HubAddress.from_connection_string(
            f"Endpoint=sb://ns.servicebus.windows.net/;{string}",
            custom_endpoint_address=f"sb://127.0.0.1:{gate.port}",
            transport_type=TransportType.AmqpOverWebsocket,
            use_tls=False,
        )
        settings = ReadSettings(receive_path="fast", receiver_timeout=LIMIT)
        batches = [*read_range(address, OffsetRange("1", 1, 31), settings)]
        assert gate.clients == 1
    found = [body for batch in batches for body in batch.column("body").to_pylist()]
    assert found == bodies[1:31]
