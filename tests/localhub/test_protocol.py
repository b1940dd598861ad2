"""What a peer may say that azure-eventhub for Python does not, and what it may not say."""

import socket

import pytest

from eventhub_checkpoints.amqp.encode import encode_described
from eventhub_checkpoints.amqp.messages import decode_message
from eventhub_checkpoints.amqp.performatives import (
    AMQP_HEADER,
    EMPTY_FRAME,
    RECEIVER,
    SASL_FRAME,
    SASL_HEADER,
    TLS_HEADER,
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    SaslInit,
    SaslOutcome,
    Source,
    encode_frame,
)
from eventhub_checkpoints.localhub import LocalHub
from waiting import LIMIT


def bodies(peer, count):
    return [decode_message(peer.payload()[1]).data[0] for _ in range(count)]


def refusal(peer, **wanted):
    """Give the condition of a refused reader; the service sends an attach without termini first."""
    answer = peer.attach_reader(**wanted)
    assert (answer.source, answer.target) == (None, None)
    detach = peer.expect(Detach)
    assert detach.closed
    return detach.error


def test_anonymous_is_among_the_mechanisms(hub):
    with socket.create_connection((hub.host, hub.port), timeout=LIMIT) as stream:
        stream.sendall(SASL_HEADER)
        stream.sendall(encode_frame(SaslInit(mechanism="ANONYMOUS"), kind=SASL_FRAME))
        stream.sendall(AMQP_HEADER + encode_frame(Open(container_id="c")))
        data = b""
        while b"localhub-" not in data:
            data += stream.recv(1000)
    assert data.startswith(SASL_HEADER)
    assert b"ANONYMOUS" in data
    assert encode_frame(SaslOutcome(), kind=SASL_FRAME) + AMQP_HEADER in data


@pytest.mark.parametrize("header", [TLS_HEADER, b"GET / HT", b"AMQP\x00\x00\x09\x01"])
def test_another_protocol_is_told_which_one_is_spoken(hub, header):
    with socket.create_connection((hub.host, hub.port), timeout=LIMIT) as stream:
        stream.sendall(header)
        assert stream.recv(100) == SASL_HEADER
        assert stream.recv(100) == b""


def test_elided_fields_and_empty_termini_are_accepted(hub, connect):
    hub.publish("orders", "0", [b"one"])
    peer = connect()
    peer.begin()
    address = b"orders/ConsumerGroups/$Default/Partitions/0"
    source = b"\x00\x53\x28\xc0" + bytes((len(address) + 3, 1, 0xA1, len(address))) + address
    target = b"\x00\x53\x29\x45"
    fields = b"\xa1\x01l\x43\x41\x40\x40" + source + target
    attach = encode_described(0x12, bytes((0xC0, len(fields) + 1, 7)) + fields)
    flow = encode_described(0x13, bytes.fromhex("c00b07 43 5264 43 5264 43 43 520a"))
    for body in (attach, flow):
        peer.send_raw((len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body)
    peer.expect(Attach)
    assert bodies(peer, 1) == [b"one"]


def test_sessions_side_by_side_on_one_connection(hub, connect):
    for partition_id in ("0", "1"):
        hub.publish("orders", partition_id, [f"from {partition_id}"])
    peer = connect()
    for channel in (0, 3):
        peer.begin(channel)
    for channel, partition_id in ((0, "0"), (3, "1")):
        address = f"orders/consumergroups/$default/partitions/{partition_id}"
        peer.attach_reader(address, channel=channel)
        peer.credit(1, channel=channel)
        where, body = peer.receive()
        assert where == channel
        assert decode_message(body.payload).data == [f"from {partition_id}".encode()]


def test_credit_is_a_limit_and_topping_it_up_goes_on(hub, connect):
    hub.publish("orders", "0", [bytes((n,)) for n in range(10)])
    peer = connect()
    peer.begin()
    peer.attach_reader()
    peer.credit(3)
    assert bodies(peer, 3) == [b"\0", b"\1", b"\2"]
    peer.credit(2, delivery_count=3, next_incoming_id=3)
    assert bodies(peer, 2) == [b"\3", b"\4"]
    # An echo comes back only after everything that credit allowed.
    peer.credit(0, delivery_count=5, next_incoming_id=5, echo=True)
    assert peer.expect(Flow).link_credit == 0


def test_draining_uses_the_credit_up(hub, connect):
    hub.publish("orders", "0", [b"x"] * 2500)
    peer = connect()
    peer.begin()
    peer.attach_reader()
    peer.credit(3000, drain=True)
    assert len(bodies(peer, 2500)) == 2500
    flow = peer.expect(Flow)
    assert (flow.delivery_count, flow.link_credit) == (3000, 0)
    hub.publish("orders", "0", [b"after"])
    peer.credit(1, delivery_count=3000, next_incoming_id=2500)
    assert bodies(peer, 1) == [b"after"]


def test_the_window_of_the_session_is_a_limit_too(hub, connect):
    hub.publish("orders", "0", [b"x"] * 5 + [b"y" * 2000])
    peer = connect()
    peer.send(Begin(incoming_window=2, outgoing_window=1))
    peer.expect(Begin)
    peer.attach_reader()
    peer.credit(10, incoming_window=2)
    assert len(bodies(peer, 2)) == 2
    peer.credit(10, incoming_window=1, next_incoming_id=2)
    assert len(bodies(peer, 1)) == 1
    peer.credit(10, incoming_window=100, next_incoming_id=3)
    assert len(bodies(peer, 3)) == 3


def test_frames_are_never_larger_than_the_peer_allows(hub):
    hub.publish("orders", "0", [b"y" * 2000])
    with socket.create_connection((hub.host, hub.port), timeout=LIMIT) as stream:
        reader = Attach(
            name="r", role=RECEIVER,
            source=Source(address="orders/ConsumerGroups/$Default/Partitions/0"),
        )  # fmt: skip
        stream.sendall(
            AMQP_HEADER
            + encode_frame(Open(container_id="c", max_frame_size=512))
            + encode_frame(Begin(incoming_window=3, outgoing_window=1))
            + encode_frame(reader)
            + encode_frame(Flow(next_incoming_id=0, incoming_window=3, handle=0, link_credit=1))
        )
        data = b""
        while len(frame_sizes(data)) < 3 + 3:
            data += stream.recv(5000)
        # All that was sent before the connection ends is here by then.
        stream.sendall(encode_frame(Close()))
        while more := stream.recv(5000):
            data += more
    opened, transfers, closed = 3, 3, 1
    sizes = frame_sizes(data)
    assert len(sizes) == opened + transfers + closed
    assert max(sizes[opened:]) <= 512


def frame_sizes(data):
    """Give the sizes of the whole frames behind the header."""
    sizes, at = [], 8
    while at + 4 <= len(data) and at + (size := int.from_bytes(data[at : at + 4], "big")) <= len(
        data
    ):
        sizes.append(size)
        at += size
    return sizes


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("nowhere/ConsumerGroups/$Default/Partitions/0", "amqp:not-found"),
        ("orders/ConsumerGroups/nobody/Partitions/0", "amqp:not-found"),
        ("orders/ConsumerGroups/$Default/Partitions/2", "com.microsoft:argument-out-of-range"),
        ("orders/ConsumerGroups/$Default/Partitions/00", "com.microsoft:argument-out-of-range"),
        ("orders", "amqp:not-found"),
        ("", "amqp:not-found"),
    ],
)
def test_a_reader_of_what_does_not_exist_is_refused(hub, connect, address, condition):
    peer = connect()
    peer.begin()
    assert refusal(peer, address=address).condition == condition
    refused = hub.refused_links()[0]
    assert (refused.container_id, refused.address) == ("peer", address)
    assert refused.condition == condition


@pytest.mark.parametrize(
    ("selector", "first"),
    [
        ("amqp.annotation.x-opt-sequence-number >= '5'", 5),
        ("amqp.annotation.x-opt-sequence-number > '-1'", 2),
        ("amqp.annotation.x-opt-sequence-number >= '0'", 2),
        ("amqp.annotation.x-opt-offset > '-1'", 2),
        ("amqp.annotation.x-opt-offset >= '0'", 2),
        ("amqp.annotation.x-opt-enqueued-time > '0'", 2),
        ("amqp.annotation.x-opt-enqueued-time >= '99999999999999'", None),
        ("amqp.annotation.x-opt-sequence-number > '6'", None),
        ("amqp.annotation.x-opt-sequence-number >= '7'", None),
        ("amqp.annotation.x-opt-offset > '@latest'", None),
    ],
)
def test_where_a_reader_of_a_trimmed_partition_starts(hub, connect, selector, first):
    hub.publish("orders", "0", [b"x"] * 7)
    hub.trim("orders", "0", before=2)
    peer = connect()
    peer.begin()
    assert peer.attach_reader(selector=selector).source is not None
    expected = 7 if first is None else first
    assert [receiver.next_sequence_number for receiver in hub.receivers("orders")] == [expected]


@pytest.mark.parametrize(
    ("selector", "condition", "text"),
    [
        (
            "amqp.annotation.x-opt-sequence-number > '7'",
            "com.microsoft:argument-error",
            "The supplied sequence number '7' is invalid. "
            "The last sequence number in the system is '6'",
        ),
        (
            "amqp.annotation.x-opt-offset > '4984'",
            "com.microsoft:argument-error",
            "The supplied offset '4984' is invalid. The last offset in the system is '180'",
        ),
        ("amqp.annotation.x-opt-offset > 'a:b'", "com.microsoft:argument-error", "'a:b'"),
        ("amqp.annotation.x-opt-sequence-number > 'a'", "amqp:invalid-field", "'a'"),
        ("variant = 'red'", "amqp:invalid-field", "variant"),
    ],
)
def test_a_position_that_does_not_exist_is_refused(hub, connect, selector, condition, text):
    hub.publish("orders", "0", [b"x"] * 7)
    peer = connect()
    peer.begin()
    error = refusal(peer, selector=selector)
    assert error.condition == condition
    assert text in error.description


def test_five_readers_without_an_epoch_share_a_partition_and_the_sixth_is_refused(hub, connect):
    peer = connect()
    peer.begin()
    for handle in range(5):
        assert peer.attach_reader(handle=handle).source is not None
    error = refusal(peer, handle=5)
    assert error.condition == "amqp:resource-limit-exceeded"
    assert "which is 5" in error.description
    peer.send(Detach(handle=0, closed=True))
    peer.expect(Detach)
    assert peer.attach_reader(handle=5).source is not None
    assert len(hub.receivers("orders")) == 5


def test_an_epoch_displaces_what_is_not_higher(hub, connect):
    peer = connect()
    peer.begin()
    peer.attach_reader(handle=0)
    for handle, epoch in ((1, 0), (2, 0), (3, 5)):
        displaced = attach_over(peer, handle, epoch)
        assert displaced.handle == handle - 1
        assert displaced.error.condition == "amqp:link:stolen"
    for epoch in (4, None):
        error = refusal(peer, handle=9, epoch=epoch)
        assert error.condition == "amqp:link:stolen"
        assert "with a higher epoch '5' already exists" in error.description
    assert [receiver.epoch for receiver in hub.receivers("orders")] == [5]


def attach_over(peer, handle, epoch):
    """Attach a reader that takes over; give the detach of the one before it."""
    seen = []
    original = peer.expect

    def expect(kind):
        _, body = peer.receive()
        seen.append(body.performative)
        return body.performative

    peer.expect = expect
    peer.attach_reader(handle=handle, epoch=epoch)
    peer.expect = original
    peer.expect(Attach)
    peer.send(Detach(handle=seen[0].handle, closed=True))
    return seen[0]


def test_ending_a_session_or_connection_frees_its_readers(hub, connect):
    first, second = connect(), connect()
    for peer in (first, second):
        peer.begin()
    first.attach_reader()
    first.send(End())
    first.expect(End)
    assert hub.receivers("orders") == []
    second.attach_reader()
    second.send(Close())
    second.expect(Close)
    assert second.is_cut_off()
    assert hub.receivers("orders") == []


@pytest.mark.parametrize(
    "raw",
    [
        encode_frame(Begin(), channel=0) * 2,
        encode_frame(Flow(), channel=9),
        encode_frame(Begin(), channel=60000),
        encode_frame(Begin()) + encode_frame(Attach(name="a", handle=999999)),
        encode_frame(Begin()) + encode_frame(SaslOutcome()),
        encode_frame(Open(container_id="again", max_frame_size=100)),
        b"\x7f\xff\xff\xff\x02\x00\x00\x00",
        b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\xff\x45",
        b"\x00\x00\x00\x0a\x02\x00\x00\x00\xff\xff",
    ],
    ids=[
        "second begin", "no session", "high channel", "high handle", "misplaced", "tiny frames",
        "huge frame", "unknown performative", "no value",
    ],
)  # fmt: skip
def test_what_is_not_allowed_ends_the_connection_with_a_condition(hub, connect, raw):
    peer = connect()
    peer.send_raw(raw)
    while not isinstance((close := peer.receive()[1].performative), Close):
        pass
    assert close.error.condition == "amqp:decode-error"
    assert peer.is_cut_off()
    assert connect().begin() is not None


def test_the_hub_sends_signs_of_life_and_ends_silent_connections():
    with (
        LocalHub({"orders": 1}, idle_timeout=0.3) as hub,
        socket.create_connection((hub.host, hub.port), timeout=LIMIT) as stream,
    ):
        stream.sendall(AMQP_HEADER + encode_frame(Open(container_id="c", idle_time_out=20)))
        data = b""
        while chunk := stream.recv(1000):
            data += chunk
    assert EMPTY_FRAME in data
    assert b"amqp:connection:forced" in data
