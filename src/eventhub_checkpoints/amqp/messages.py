"""Messages and the sections of their payload.

Source: OASIS AMQP 1.0, part 3, section 3.2; for batches, azure-eventhub 5.15.1,
`_pyamqp/message.py`, `BatchMessage`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from eventhub_checkpoints.amqp.decode import STRICT, Buffer, Decoder, decode, skip
from eventhub_checkpoints.amqp.encode import encode, encode_described
from eventhub_checkpoints.amqp.performatives import (
    Composite,
    anything,
    binary,
    boolean,
    composite,
    string,
    symbol,
    timestamp,
    ubyte,
    uint,
)
from eventhub_checkpoints.amqp.types import CodecError, Symbol, Value

BATCH_FORMAT = 0x8001_3700
"""Message format of a batch: every data section holds one encoded message."""

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES = 0x70, 0x71, 0x72, 0x73
APPLICATION_PROPERTIES, DATA, SEQUENCE, VALUE, FOOTER = 0x74, 0x75, 0x76, 0x77, 0x78


class _Nothing:
    """Class of `NO_VALUE`; a value section may hold null, so None cannot mean "no section"."""

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _Nothing()
"""Marks in `Message.value` a message without a value section."""


@composite(HEADER, "amqp:header:list")
class Header(Composite):
    """Delivery parameters of a message. Units: `ttl` milliseconds."""

    durable: boolean = False
    priority: ubyte = 4
    ttl: uint | None = None
    first_acquirer: boolean = False
    delivery_count: uint = 0


@composite(PROPERTIES, "amqp:properties:list")
class Properties(Composite):
    """Fixed properties of a message. Units: times are milliseconds since the epoch."""

    message_id: anything = None
    user_id: binary | None = None
    to: anything = None
    subject: string | None = None
    reply_to: anything = None
    correlation_id: anything = None
    content_type: symbol | None = None
    content_encoding: symbol | None = None
    absolute_expiry_time: timestamp | None = None
    creation_time: timestamp | None = None
    group_id: string | None = None
    group_sequence: uint | None = None
    reply_to_group_id: string | None = None


@dataclass(slots=True, kw_only=True)
class Message:
    """Bare message with its annotations; the body is data, sequence or value."""

    header: Header | None = None
    delivery_annotations: dict[Any, Any] | None = None
    message_annotations: dict[Any, Any] | None = None
    properties: Properties | None = None
    application_properties: dict[Any, Any] | None = None
    data: list[bytes] = field(default_factory=list)
    sequence: list[list[Any]] = field(default_factory=list)
    value: Any = NO_VALUE
    footer: dict[Any, Any] | None = None

    def encode(self) -> bytes:
        """Encode the sections that are present, in the order of the specification."""
        parts: list[bytes] = []
        for code, (name, _, _) in _SECTIONS.items():
            value = getattr(self, name)
            if isinstance(value, Composite):
                parts.append(value.encode())
            elif code in _REPEATED:
                parts += [section(code, item) for item in value]
            elif value is not (NO_VALUE if code == VALUE else None):
                if code in _ANNOTATIONS:
                    value = {Symbol(key) if type(key) is str else key: value[key] for key in value}
                parts.append(section(code, value))
        return b"".join(parts)


class Section(NamedTuple):
    """Position of a section: its value extends from `start` to `end`."""

    code: int
    offset: int
    start: int
    end: int


def section(code: int, value: Value) -> bytes:
    """Encode one section."""
    return encode_described(code, encode(value))


def sections(buffer: Buffer, offset: int = 0) -> Iterator[Section]:
    """Yield a payload's sections without reading their values.

    Raises:
        CodecError: the payload is truncated, or holds something other than sections.
    """
    end = len(buffer)
    while offset < end:
        if buffer[offset]:
            raise CodecError(f"no message section starts at offset {offset}")
        descriptor, start = decode(buffer, offset + 1)
        code = _CODES.get(descriptor) if isinstance(descriptor, int | str) else None
        if code is None:
            raise CodecError(f"{descriptor!r:.80} is not a message section")
        stop = skip(buffer, start)
        yield Section(code, offset, start, stop)
        offset = stop


def decode_message(buffer: Buffer, offset: int = 0, decoder: Decoder = STRICT) -> Message:
    """Decode a payload into a message.

    Args:
        buffer: the payload; for a batch, see `split_batch`.
        offset: where the first section starts.
        decoder: `Decoder("replace")` reads strings that are not UTF-8 instead of raising.

    Raises:
        CodecError: the payload is not a message.
    """
    message = Message()
    for part in sections(buffer, offset):
        value, _ = decoder.decode(buffer, part.start)
        name, _, kind = _SECTIONS[part.code]
        if issubclass(kind, Composite):
            value = kind.from_fields(value)
        elif kind is not object and type(value) is not kind:
            raise _wrong_type(name, value, kind)
        if part.code in _REPEATED:
            getattr(message, name).append(value)
        else:
            setattr(message, name, value)
    return message


def encode_batch(messages: Iterable[bytes], envelope: Message | None = None) -> bytes:
    """Encode a batch of encoded messages: the payload of one delivery of format `BATCH_FORMAT`."""
    head = b"" if envelope is None else envelope.encode()
    return head + b"".join(section(DATA, message) for message in messages)


def split_batch(payload: Buffer) -> list[bytes]:
    """Return the encoded messages in a payload of format `BATCH_FORMAT`.

    Raises:
        CodecError: the payload is not a batch.
    """
    values = [decode(payload, part.start)[0] for part in sections(payload) if part.code == DATA]
    for value in values:
        if not isinstance(value, bytes):
            raise _wrong_type("data", value, bytes)
    return values


def _wrong_type(name: str, value: Value, expected: type) -> CodecError:
    return CodecError(f"section {name} holds a {type(value).__name__}, not a {expected.__name__}")


_SECTIONS: dict[int, tuple[str, str, type]] = {
    HEADER: ("header", "amqp:header:list", Header),
    DELIVERY_ANNOTATIONS: ("delivery_annotations", "amqp:delivery-annotations:map", dict),
    MESSAGE_ANNOTATIONS: ("message_annotations", "amqp:message-annotations:map", dict),
    PROPERTIES: ("properties", "amqp:properties:list", Properties),
    APPLICATION_PROPERTIES: ("application_properties", "amqp:application-properties:map", dict),
    DATA: ("data", "amqp:data:binary", bytes),
    SEQUENCE: ("sequence", "amqp:amqp-sequence:list", list),
    VALUE: ("value", "amqp:amqp-value:*", object),
    FOOTER: ("footer", "amqp:footer:map", dict),
}
"""Field of `Message`, descriptor and type of each section, in the order of the specification."""

_REPEATED = (DATA, SEQUENCE)
_ANNOTATIONS = (DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, FOOTER)
"""Sections whose keys become symbols, even if passed as `str`."""

_CODES: dict[int | str, int] = {code: code for code in _SECTIONS}
_CODES.update({descriptor: code for code, (_, descriptor, _) in _SECTIONS.items()})
