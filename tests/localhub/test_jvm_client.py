"""What the client of the JVM connector does and Python's does not; it reads itself in tests/jvm."""

import pytest
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.amqp.encode import encode_described, encode_list_of
from eventhub_checkpoints.amqp.messages import Message, Properties, decode_message
from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Composite,
    Disposition,
    Flow,
    Source,
    Target,
    Transfer,
)
from eventhub_checkpoints.amqp.types import Described, Symbol
from eventhub_checkpoints.localhub import LocalHub

NULL, EMPTY_LIST = b"\x40", b"\x45"
AMQPS = 5671


def elided(composite):
    """Encode as proton-j does: without the nulls at the end, also in what is nested."""
    items = []
    for name, kind in composite.layout:
        value = getattr(composite, name)
        if value is None:
            items.append(NULL)
        else:
            items.append(elided(value) if isinstance(value, Composite) else kind.write(value))
    while items and items[-1] == NULL:
        items.pop()
    return encode_described(composite.descriptor, encode_list_of(items) if items else EMPTY_LIST)


def send(peer, performative, channel=0, payload=b""):
    body = elided(performative) + payload
    peer.send_raw((len(body) + 8).to_bytes(4, "big") + b"\x02\x00" + bytes((0, channel)) + body)


def attach(peer, name, handle, role, source="", target="", channel=0, **fields):
    ends = {
        "source": Source(address=source or None, filters=fields.pop("filters", None)),
        "target": Target(address=target or None),
    }
    if role is SENDER:
        fields["initial_delivery_count"] = 0
    send(peer, Attach(name=name, handle=handle, role=role, **ends, **fields), channel)
    return peer.expect(Attach)


def credit(peer, handle, count, channel=0, seen=0):
    """Units: `seen` in deliveries of this session, all of them on this link."""
    windows = {"next_incoming_id": seen, "incoming_window": 2**31 - 1}
    numbers = {"next_outgoing_id": 1, "outgoing_window": 2**31 - 1}
    given = {"handle": handle, "delivery_count": seen, "link_credit": count}
    send(peer, Flow(**windows, **numbers, **given), channel)


def ask(peer, handle, reply_to, **asked):
    properties = Properties(message_id="request1", reply_to=reply_to)
    message = Message(properties=properties, application_properties=asked, data=[b""])
    transfer = Transfer(
        handle=handle, delivery_id=0, delivery_tag=b"0", message_format=0, settled=False
    )
    send(peer, transfer, payload=message.encode())
    # The disposition of the request may come before the answer or after it.
    bodies = [peer.receive()[1] for _ in range(2)]
    [answer] = [body for body in bodies if isinstance(body.performative, Transfer)]
    return decode_message(answer.payload)


def test_it_asks_before_it_shows_a_token(hub, connect):
    hub.publish("orders", "1", [b"x"] * 3)
    peer = connect()
    peer.begin()
    attach(peer, "mgmt:sender", 0, SENDER, target="$management")
    peer.expect(Flow)
    reply_to = "management-client-reply-to"
    attach(peer, "mgmt:receiver", 1, RECEIVER, source="$management", target=reply_to)
    credit(peer, 1, 1000)
    asked = {"operation": "READ", "type": "com.microsoft:partition", "security_token": "any"}
    answer = ask(peer, 0, reply_to, name="orders", partition="1", **asked)
    assert answer.properties.correlation_id == "request1"
    assert answer.application_properties["status-code"] == 200
    assert answer.value["last_enqueued_sequence_number"] == 2


def test_a_token_is_taken_and_a_receiver_has_a_session_of_its_own(hub, connect):
    hub.publish("orders", "0", [bytes((n,)) for n in range(30)])
    peer = connect()
    peer.begin()
    attach(peer, "cbs:sender", 0, SENDER, target="$cbs")
    peer.expect(Flow)
    attach(peer, "cbs:receiver", 1, RECEIVER, source="$cbs", target="cbs-client-reply-to")
    credit(peer, 1, 1000)
    asked = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": "any"}
    assert ask(peer, 0, "cbs-client-reply-to", **asked).application_properties["status-code"] == 202
    name = "apache.org:selector-filter:string"
    selector = "amqp.annotation.x-opt-sequence-number >= '10'"
    peer.begin(1)
    attach(
        peer, "LN_1", 0, RECEIVER, channel=1,
        source="orders/ConsumerGroups/audit/Partitions/0", target="",
        filters={Symbol(name): Described(Symbol(name), selector)},
        properties={Symbol("com.microsoft:epoch"): 0},
    )  # fmt: skip
    credit(peer, 0, 8, channel=1)
    first = [decode_message(peer.payload()[1]).data[0][0] for _ in range(8)]
    # It confirms what it has taken, although that was sent settled.
    send(peer, Disposition(role=RECEIVER, first=0, last=7, settled=True), 1)
    credit(peer, 0, 12, channel=1, seen=8)
    more = [decode_message(peer.payload()[1]).data[0][0] for _ in range(12)]
    assert first + more == [*range(10, 30)]
    assert [receiver.epoch for receiver in hub.receivers("orders")] == [0]


def test_a_connection_string_is_enough_with_tls_on_its_one_port():
    # The connector ignores a port, so hubs side by side have addresses of their own.
    for last in range(200, 255):
        hub = LocalHub({"orders": 2}, host=f"127.0.0.{last}", port=AMQPS, tls=True)
        try:
            hub.start()
        except OSError:
            continue
        break
    else:
        pytest.skip(f"no address 127.0.0.N of this machine has port {AMQPS} free")
    try:
        text = hub.connection_string("orders")
        assert text.startswith(f"Endpoint=sb://127.0.0.{last}:5671;")
        assert "UseDevelopmentEmulator" not in text
        client = EventHubConsumerClient.from_connection_string(
            text, "$Default", connection_verify=hub.ca_file, retry_total=0
        )
        with client:
            assert client.get_partition_ids() == ["0", "1"]
    finally:
        hub.stop()
