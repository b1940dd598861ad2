"""Targets: AMQP as peers send it to the decoder and to the local hub, and headers of Kafka."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from amqp_deliveries import CHANNEL, HANDLE, MAX_FRAME_SIZE
from amqp_deliveries import frames_of as deliveries_of
from eventhub_checkpoints._shared.telemetry import links_of
from eventhub_checkpoints.amqp import performatives as amqp
from eventhub_checkpoints.amqp.decode import PLAIN, decode, skip
from eventhub_checkpoints.amqp.encode import encode
from eventhub_checkpoints.amqp.messages import (
    Message,
    Properties,
    decode_message,
    encode_batch,
    sections,
    split_batch,
)
from eventhub_checkpoints.amqp.types import Array, CodecError, Described, Symbol, Timestamp, UInt
from eventhub_checkpoints.localhub.connection import Connection
from eventhub_checkpoints.localhub.hubs import Hubs
from eventhub_checkpoints.localhub.readers import SELECTOR
from eventhub_checkpoints.localhub.server import Server
from eventhub_checkpoints.localhub.tokens import TokenError, expiry_of
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.kafka.records import HeaderForm, HeaderReader
from fuzzing.target import Target, require_equal, samples, text_of

VALUES: list[Any] = [
    None,
    [True, UInt(7), -1, 2**40, 1.5, b"bytes", "text", Symbol("symbol"), Timestamp(1)],
    {Symbol("x-opt-offset"): "4711", "nested": [{}, [], Described(Symbol("d"), [1])]},
    Array([Symbol("a"), Symbol("b")]),
]
MESSAGE = Message(
    message_annotations={
        Symbol("x-opt-sequence-number"): 7,
        Symbol("x-opt-offset"): "4711",
        Symbol("x-opt-enqueued-time"): Timestamp(1_795_514_400_000),
        Symbol("x-opt-partition-key"): "key",
    },
    properties=Properties(message_id="id", content_type=Symbol("text/plain")),
    application_properties={"name": "value", "count": 7},
    data=[b"body"],
)


def value(data: bytes) -> None:
    """Decode a value strictly and plainly; what was read comes back from the encoder."""
    found, end = decode(data)
    require_equal(skip(data) if data[0] else end, end)
    PLAIN.decode(data)
    try:
        encoded = encode(found)
    except CodecError:  # AMQP's own empty elements, such as an array of nulls with descriptors
        return
    again, end = decode(encoded)
    require_equal(again, found)
    require_equal(end, len(encoded))


def message(data: bytes) -> None:
    """Decode a message, as one and as a batch."""
    for part in sections(data):
        require_equal(part.start <= part.end <= len(data), True)
    found = decode_message(data)
    require_equal(decode_message(found.encode()), found)
    split_batch(data)


def frames(data: bytes) -> None:
    """Split a stream into frames, and decode their performatives."""
    at = 0
    while (frame := amqp.split_frame(data, at, MAX_FRAME_SIZE)) is not None:
        body = amqp.decode_body(data, frame)
        if body.performative is not None:
            again = amqp.encode_frame(body.performative, frame.channel, body.payload, frame.kind)
            same = amqp.decode_body(again, amqp.Frame(frame.kind, frame.channel, 8, len(again)))
            require_equal(same, body)
        at = frame.end


def deliveries(data: bytes) -> None:
    """Feed a link in pieces, and take its rows."""
    link = Deliveries(channel=CHANNEL, handle=HANDLE, max_frame_size=MAX_FRAME_SIZE)
    try:
        for at in range(0, len(data), 4096):
            link.feed(data[at : at + 4096])
    finally:
        columns = link.take()
        require_equal(len(columns.numbers), len(columns.bodies))


class Transport(asyncio.Transport):
    """Transport that keeps nothing of what is written."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closing = False

    def write(self, data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close


class Listening(Server):
    """Server of the local hub without a socket."""

    @property
    def is_listening(self) -> bool:
        return True


@contextmanager
def connected() -> Iterator[Connection]:
    """Yield a connection to a hub with two partitions."""
    server = Listening(Hubs({"orders": 2}, None), 60.0)
    server._all_lost = asyncio.Event()
    connection = Connection(server)
    connection.connection_made(Transport())
    try:
        yield connection
    finally:
        connection.connection_lost(None)


def hub_connection(data: bytes) -> None:
    """Let the local hub read what a client sends."""

    async def talk() -> None:
        with connected() as connection:
            for at in range(0, len(data), 4096):
                connection.data_received(data[at : at + 4096])
                await asyncio.sleep(0)

    with asyncio.Runner() as runner:
        problems: list[BaseException] = []
        runner.get_loop().set_exception_handler(
            lambda loop, context: problems.append(context.get("exception") or OSError(str(context)))
        )
        runner.run(talk())
    if problems:
        raise problems[0]


def hub_token(data: bytes) -> None:
    """Read tokens of a client; an accepted one expires at a time that can be waited for."""
    token = text_of(data)
    require_equal(NOW < expiry_of(token, ["key"], NOW) < MOST_SECONDS, True)


def trace_context(data: bytes) -> None:
    """Read the context of a producer in the properties of an event."""
    header, _, state = data.partition(b"\n")
    properties = {b"traceparent": header, b"tracestate": state}
    links_of([SimpleNamespace(properties=properties, enqueued_time=None)])
    links_of([SimpleNamespace(properties={"Diagnostic-Id": text_of(header)}, enqueued_time=None)])


def kafka_headers(data: bytes) -> None:
    """Read the headers of records; every form gives strings."""
    parts = data.split(b"\xfe")
    records = [[(part[:4].decode("latin-1"), part[4:] or None) for part in parts]] * 2
    forms: tuple[HeaderForm, ...] = ("auto", "amqp", "text")
    for form in forms:
        for maps in HeaderReader(form).maps(records):
            require_equal(len(maps.keys), len(maps.values))


def frames_of(*performatives: tuple[amqp.Composite, bytes]) -> bytes:
    """Return the frames of a session between its start and its end."""
    sent = [
        (amqp.Open(container_id="client"), b""),
        (amqp.Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10), b""),
        *performatives,
        (amqp.End(), b""),
        (amqp.Close(), b""),
    ]
    return b"".join(amqp.encode_frame(each, payload=payload) for each, payload in sent)


def attached(name: str, handle: int, address: str, role: bool, start: str = "") -> amqp.Attach:
    """Return the attachment of a receiver (`role`), perhaps at a start position, or a sender."""
    filters = {Symbol(SELECTOR): Described(Symbol(SELECTOR), start)} if start else None
    node, own = f"amqps://ns/{address}", "own"
    source = amqp.Source(address=node if role else own, filters=filters)
    target = amqp.Target(address=own if role else node)
    return amqp.Attach(name=name, handle=handle, role=role, source=source, target=target)


def transferred(handle: int, message: Message) -> tuple[amqp.Transfer, bytes]:
    """Return the transfer of a message."""
    transfer = amqp.Transfer(handle=handle, delivery_id=0, delivery_tag=b"0", settled=False)
    return transfer, message.encode()


PARTITION = "orders/ConsumerGroups/$Default/Partitions/0"
CREDIT = amqp.Flow(
    incoming_window=10, next_outgoing_id=0, outgoing_window=10, handle=0, link_credit=10
)
READING = frames_of(
    (attached("in", 0, PARTITION, True, "amqp.annotation.x-opt-sequence-number > '-1'"), b""),
    (CREDIT, b""),
    (attached("out", 1, "orders/Partitions/0", False), b""),
    transferred(1, Message(data=[b"body"])),
    (amqp.Detach(handle=0, closed=True), b""),
)
ASKING = frames_of(
    (attached("answers", 0, "$management", True), b""),
    (CREDIT, b""),
    (attached("requests", 1, "$management", False), b""),
    transferred(
        1,
        Message(
            properties=Properties(message_id="1", reply_to="own"),
            application_properties={
                "operation": "READ",
                "type": "com.microsoft:partition",
                "name": "orders",
                "partition": "0",
            },
        ),
    ),
)
JWT = "e30.eyJleHAiOiAxNzk1NTE0NDAwfQ.c2ln"
TOKEN = (
    "SharedAccessSignature sr=sb%3a%2f%2fns&se=1795514400&skn=name"
    "&sig=Pz8%2fP3lB0jvRL5WcWPzVnXrSD4hQ2mAKZfM7r0hmBwY%3d"
)
PRESENTING = frames_of(
    (attached("answers", 0, "$cbs", True), b""),
    (CREDIT, b""),
    (attached("tokens", 1, "$cbs", False), b""),
    transferred(
        1,
        Message(
            properties=Properties(message_id="1", reply_to="own"),
            application_properties={"operation": "put-token", "type": "jwt", "name": "orders"},
            value=JWT,
        ),
    ),
)
SASL = amqp.encode_frame(amqp.SaslInit(mechanism="ANONYMOUS"), kind=amqp.SASL_FRAME)
PAYLOAD = MESSAGE.encode()
NOW = 1_795_000_000.0
MOST_SECONDS = 253_402_300_800.0
"""End of the year 9999."""
CODEC = (CodecError,)
TARGETS = [
    Target("amqp-value", value, [encode(each) for each in VALUES], CODEC),
    Target("amqp-message", message, [PAYLOAD, encode_batch([PAYLOAD, PAYLOAD])], CODEC),
    Target("amqp-frames", frames, [READING, ASKING, b"".join(deliveries_of(PAYLOAD, 0, 3))], CODEC),
    Target(
        "amqp-deliveries",
        deliveries,
        [
            b"".join(b"".join(deliveries_of(PAYLOAD, number, parts)) for number in range(4))
            for parts in (1, 3)
        ],
        CODEC,
    ),
    Target(
        "localhub-connection",
        hub_connection,
        [
            *(amqp.AMQP_HEADER + each for each in (READING, ASKING, PRESENTING)),
            amqp.SASL_HEADER + SASL + amqp.AMQP_HEADER + READING,
        ],
    ),
    Target("hub-token", hub_token, samples(JWT), (TokenError,)),
    Target(
        "trace-context",
        trace_context,
        samples(f"00-{'a1' * 16}-{'b2' * 8}-01\nvendor=state,other=1"),
    ),
    Target(
        "kafka-headers",
        kafka_headers,
        [b"\xfe".join(b"name" + encode(each) for each in (7, "text", None, True)), b"nametext"],
    ),
]
