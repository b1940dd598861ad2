"""Performatives, with their termini, outcomes and SASL frames, and the frames that carry them.

A performative is a composite: a described list of named fields, here a dataclass. Its class names
the fields in wire order, with their AMQP types as annotations. All fields are written, trailing
nulls included, because the azure-eventhub client reads fields by position. Any number of fields is
accepted when reading, because the specification allows peers to omit trailing nulls.

Source: OASIS AMQP 1.0, part 1, section 1.4; part 2, sections 2.2, 2.3 and 2.7; part 5, section
5.3.1; azure-eventhub 5.15.1, `_pyamqp/_connection.py`.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
)

from eventhub_checkpoints.amqp import types
from eventhub_checkpoints.amqp.decode import Buffer, decode
from eventhub_checkpoints.amqp.encode import encode, encode_described, encode_list_of
from eventhub_checkpoints.amqp.types import CodecError, Value


@dataclass(frozen=True, slots=True)
class Kind:
    """How a field is encoded, and checked after decoding.

    Attributes:
        write: encodes a value that is not None.
        read: checks and converts a decoded value; its string names the field, for errors.
    """

    write: Callable[[Any], bytes]
    read: Callable[[str, Value], Value]


@dataclass(slots=True, kw_only=True)
class Composite:
    """types.Described list with named fields."""

    descriptor: ClassVar[int]
    layout: ClassVar[tuple[tuple[str, Kind], ...]]

    def encode(self) -> bytes:
        """Encode the composite with all of its fields."""
        values = ((getattr(self, name), kind) for name, kind in self.layout)
        items = [b"\x40" if value is None else kind.write(value) for value, kind in values]
        return encode_described(self.descriptor, encode_list_of(items))

    @classmethod
    def from_fields(cls, values: Value) -> Self:
        """Build the composite from decoded fields; missing and null ones get their defaults.

        Raises:
            CodecError: there are more fields than the composite has, or one has a wrong type.
        """
        if not isinstance(values, list) or len(values) > len(cls.layout):
            raise CodecError(f"{cls.__name__} must be a list of at most {len(cls.layout)} fields")
        present = {}
        for (name, kind), value in zip(cls.layout, values, strict=False):
            if value is not None:
                present[name] = kind.read(f"{cls.__name__}.{name}", value)
        return cls(**present)


_CLASSES: dict[int | str, type[Composite]] = {}
C = TypeVar("C", bound=Composite)


@dataclass_transform(kw_only_default=True)
def composite(code: int, name: str) -> Callable[[type[C]], type[C]]:
    """Make a dataclass, registered under its numeric and its symbolic descriptor."""

    def register(cls: type[C]) -> type[C]:
        registered = dataclass(slots=True, kw_only=True)(cls)
        registered.descriptor = code
        registered.layout = tuple((entry.name, _kind(entry.type)) for entry in fields(registered))
        _CLASSES[code] = _CLASSES[name] = registered
        return registered

    return register


def from_described(value: Value) -> Composite:
    """Build the composite that a described list represents.

    Raises:
        CodecError: the value is not described, or its descriptor is not known.
    """
    if isinstance(value, types.Described) and isinstance(value.descriptor, int | str):
        cls = _CLASSES.get(value.descriptor)
        if cls is not None:
            return cls.from_fields(value.value)
    raise CodecError(f"unknown AMQP composite {getattr(value, 'descriptor', value)!r:.80}")


def _kind(annotation: Any) -> Kind:
    """Find the field's kind, also inside a union such as `uint | None`."""
    kinds = [part for part in get_args(annotation) if isinstance(part, Kind)]
    return kinds[0] if kinds else _kind(get_args(annotation)[0])


def _plain(expected: type, wrapper: Callable[[Any], Value]) -> Kind:
    def read(name: str, value: Value) -> Value:
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise CodecError(f"{name} is a {type(value).__name__}, not a {expected.__name__}")
        return value

    return Kind(lambda value: encode(wrapper(value)), read)


def _read_symbols(name: str, value: Value) -> tuple[str, ...]:
    items = tuple(value) if isinstance(value, types.Array) else (value,)
    if not all(isinstance(item, str) for item in items):
        raise CodecError(f"{name} holds something other than symbols")
    return items


def _write_symbols(value: tuple[str, ...]) -> bytes:
    return encode(types.Array(map(types.Symbol, value))) if value else b"\x40"


T = TypeVar("T")

string: TypeAlias = Annotated[str, _plain(str, str)]
symbol: TypeAlias = Annotated[str, _plain(str, types.Symbol)]
binary: TypeAlias = Annotated[bytes, _plain(bytes, bytes)]
boolean: TypeAlias = Annotated[bool, _plain(bool, bool)]
ubyte: TypeAlias = Annotated[int, _plain(int, types.UByte)]
ushort: TypeAlias = Annotated[int, _plain(int, types.UShort)]
uint: TypeAlias = Annotated[int, _plain(int, types.UInt)]
ulong: TypeAlias = Annotated[int, _plain(int, types.ULong)]
timestamp: TypeAlias = Annotated[int, _plain(int, types.Timestamp)]
mapping: TypeAlias = Annotated[dict[Any, Any], _plain(dict, dict)]
anything: TypeAlias = Annotated[Any, Kind(encode, lambda name, value: value)]
symbols: TypeAlias = Annotated[tuple[str, ...], Kind(_write_symbols, _read_symbols)]
"""No, one or several symbols; on the wire null, a symbol or an array."""
nested = Annotated[
    T, Kind(lambda value: bytes(value.encode()), lambda name, value: from_described(value))
]
"""Field that holds another composite."""


@composite(0x1D, "amqp:error:list")
class Error(Composite):
    """Error condition and its description."""

    condition: symbol = "amqp:internal-error"
    description: string | None = None
    info: mapping | None = None


@composite(0x23, "amqp:received:list")
class Received(Composite):
    """Delivery state: how much of a delivery has arrived."""

    section_number: uint = 0
    section_offset: ulong = 0


@composite(0x24, "amqp:accepted:list")
class Accepted(Composite):
    """Outcome: the message was processed."""


@composite(0x25, "amqp:rejected:list")
class Rejected(Composite):
    """Outcome: the message is invalid."""

    error: nested[Error] | None = None


@composite(0x26, "amqp:released:list")
class Released(Composite):
    """Outcome: the message was not processed."""


@composite(0x27, "amqp:modified:list")
class Modified(Composite):
    """Outcome: the message was not processed, and was changed."""

    delivery_failed: boolean = False
    undeliverable_here: boolean = False
    message_annotations: mapping | None = None


@composite(0x30, "amqp:declared:list")
class Declared(Composite):
    """Outcome of a transaction's declaration."""

    txn_id: binary | None = None


@composite(0x34, "amqp:transactional-state:list")
class TransactionalState(Composite):
    """Delivery state inside a transaction."""

    txn_id: binary | None = None
    outcome: nested[Composite] | None = None


@composite(0x28, "amqp:source:list")
class Source(Composite):
    """Source terminus: where the messages of a link come from."""

    address: anything = None
    durable: uint = 0
    expiry_policy: symbol = "session-end"
    timeout: uint = 0
    dynamic: boolean = False
    dynamic_node_properties: mapping | None = None
    distribution_mode: symbol | None = None
    filters: mapping | None = None
    default_outcome: nested[Composite] | None = None
    outcomes: symbols = ()
    capabilities: symbols = ()


@composite(0x29, "amqp:target:list")
class Target(Composite):
    """Target terminus: where the messages of a link go."""

    address: anything = None
    durable: uint = 0
    expiry_policy: symbol = "session-end"
    timeout: uint = 0
    dynamic: boolean = False
    dynamic_node_properties: mapping | None = None
    capabilities: symbols = ()


UINT_MAX = 0xFFFF_FFFF

SENDER, RECEIVER = False, True
"""Roles of a link endpoint, as encoded in attach and disposition."""


@composite(0x10, "amqp:open:list")
class Open(Composite):
    """Open a connection. Units: `idle_time_out` milliseconds, `max_frame_size` bytes."""

    container_id: string = ""
    hostname: string | None = None
    max_frame_size: uint = UINT_MAX
    channel_max: ushort = 65535
    idle_time_out: uint | None = None
    outgoing_locales: symbols = ()
    incoming_locales: symbols = ()
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x11, "amqp:begin:list")
class Begin(Composite):
    """Begin a session on a channel. Units: windows count transfer frames."""

    remote_channel: ushort | None = None
    next_outgoing_id: uint = 0
    incoming_window: uint = 0
    outgoing_window: uint = 0
    handle_max: uint = UINT_MAX
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x12, "amqp:attach:list")
class Attach(Composite):
    """Attach a link to a session; `role` is `SENDER` or `RECEIVER`."""

    name: string = ""
    handle: uint = 0
    role: boolean = SENDER
    snd_settle_mode: ubyte = 2
    rcv_settle_mode: ubyte = 0
    source: nested[Composite] | None = None
    target: nested[Composite] | None = None
    unsettled: mapping | None = None
    incomplete_unsettled: boolean = False
    initial_delivery_count: uint | None = None
    max_message_size: ulong | None = None
    offered_capabilities: symbols = ()
    desired_capabilities: symbols = ()
    properties: mapping | None = None


@composite(0x13, "amqp:flow:list")
class Flow(Composite):
    """Report a session's windows and, with a handle, a link's credit."""

    next_incoming_id: uint | None = None
    incoming_window: uint = 0
    next_outgoing_id: uint = 0
    outgoing_window: uint = 0
    handle: uint | None = None
    delivery_count: uint | None = None
    link_credit: uint | None = None
    available: uint | None = None
    drain: boolean = False
    echo: boolean = False
    properties: mapping | None = None


@composite(0x14, "amqp:transfer:list")
class Transfer(Composite):
    """Carry a message, or a part of one where `more` is set; the payload follows the list."""

    handle: uint = 0
    delivery_id: uint | None = None
    delivery_tag: binary | None = None
    message_format: uint | None = None
    settled: boolean | None = None
    more: boolean = False
    rcv_settle_mode: ubyte | None = None
    state: nested[Composite] | None = None
    resume: boolean = False
    aborted: boolean = False
    batchable: boolean = False


@composite(0x15, "amqp:disposition:list")
class Disposition(Composite):
    """Report the outcome of the deliveries `first` to `last`."""

    role: boolean = RECEIVER
    first: uint = 0
    last: uint | None = None
    settled: boolean = False
    state: nested[Composite] | None = None
    batchable: boolean = False


@composite(0x16, "amqp:detach:list")
class Detach(Composite):
    """Detach a link, permanently if `closed` is set."""

    handle: uint = 0
    closed: boolean = False
    error: nested[Error] | None = None


@composite(0x17, "amqp:end:list")
class End(Composite):
    """End a session."""

    error: nested[Error] | None = None


@composite(0x18, "amqp:close:list")
class Close(Composite):
    """Close a connection."""

    error: nested[Error] | None = None


@composite(0x40, "amqp:sasl-mechanisms:list")
class SaslMechanisms(Composite):
    """Mechanisms that the server offers."""

    sasl_server_mechanisms: symbols = ()


@composite(0x41, "amqp:sasl-init:list")
class SaslInit(Composite):
    """Mechanism that the client chooses."""

    mechanism: symbol = ""
    initial_response: binary | None = None
    hostname: string | None = None


@composite(0x42, "amqp:sasl-challenge:list")
class SaslChallenge(Composite):
    """Challenge from the server."""

    challenge: binary | None = None


@composite(0x43, "amqp:sasl-response:list")
class SaslResponse(Composite):
    """Response from the client."""

    response: binary | None = None


@composite(0x44, "amqp:sasl-outcome:list")
class SaslOutcome(Composite):
    """Result of the exchange: 0 is ok, 1 refused, 2 to 4 a system error."""

    code: ubyte = 0
    additional_data: binary | None = None


AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
TLS_HEADER = b"AMQP\x02\x01\x00\x00"
EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"
"""Frame without a body: a heartbeat."""

AMQP_FRAME, SASL_FRAME = 0, 1
MIN_MAX_FRAME_SIZE = 512

_BODIES = (*range(0x10, 0x19), *range(0x40, 0x45))
"""Descriptors of performatives and of SASL frames."""

_HEAD = struct.Struct(">IBBH")


class Frame(NamedTuple):
    """Frame inside a buffer: the body extends from `start` to `end`."""

    kind: int
    channel: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Body:
    """A frame's performative (None in an empty frame) and the payload after it."""

    performative: Composite | None
    payload: bytes


def encode_frame(
    performative: Composite, channel: int = 0, payload: bytes = b"", kind: int = AMQP_FRAME
) -> bytes:
    """Encode a frame; `payload` follows the performative unchanged."""
    body = performative.encode()
    return _HEAD.pack(8 + len(body) + len(payload), 2, kind, channel) + body + payload


FRAME_OVERHEAD = 64
"""Bytes of a frame before its part of a payload: the frame's head and a transfer, at most."""


def frames_needed(size: int, max_frame_size: int) -> int:
    """Return how many frames a payload of so many bytes takes."""
    return -(-size // (max_frame_size - FRAME_OVERHEAD))


def encode_delivery(
    transfer: Transfer, channel: int, payload: bytes, max_frame_size: int
) -> list[bytes]:
    """Encode the frames of a delivery, each with a part of its payload.

    Args:
        transfer: of the delivery; `more` is set for each frame.
        channel: of the session.
        payload: what is delivered.
        max_frame_size: the largest frame that the peer accepts, in bytes.
    """
    room = max_frame_size - FRAME_OVERHEAD
    frames = []
    for begin in range(0, len(payload), room):
        transfer.more = begin + room < len(payload)
        frames.append(encode_frame(transfer, channel, payload[begin : begin + room]))
    return frames


def split_frame(buffer: Buffer, offset: int, limit: int) -> Frame | None:
    """Find the frame that starts at `offset`.

    Args:
        buffer: received bytes.
        offset: where the frame starts.
        limit: the negotiated maximum frame size, in bytes.

    Returns:
        The frame, or None while some of its bytes are missing.

    Raises:
        CodecError: the header is impossible, or the frame is larger than the limit.
    """
    if len(buffer) - offset < 8:
        return None
    size, words, kind, channel = _HEAD.unpack_from(buffer, offset)
    if size < 8 or words < 2 or words * 4 > size or kind > SASL_FRAME:
        raise CodecError(f"{bytes(buffer[offset : offset + 8])!r} is not an AMQP frame header")
    if size > limit:
        raise CodecError(f"a frame of {size} bytes is larger than the {limit} negotiated")
    if len(buffer) - offset < size:
        return None
    return Frame(kind, channel, offset + words * 4, offset + size)


def decode_body(buffer: Buffer, frame: Frame) -> Body:
    """Decode a frame's performative; the payload is copied out of the buffer.

    Raises:
        CodecError: the body is not a performative.
    """
    if frame.start == frame.end:
        return Body(None, b"")
    # The view keeps the decoder from reading on into the next frame.
    with memoryview(buffer) as whole, whole[frame.start : frame.end] as view:
        value, at = decode(view)
        performative = from_described(value)
        if performative.descriptor not in _BODIES:
            name = type(performative).__name__
            raise CodecError(f"a frame's body cannot be {name}; expected a performative")
        return Body(performative, bytes(view[at:]))
