"""Messages and the sections of their payload.

Source: OASIS AMQP 1.0, part 3, section 3.2; for batches, azure-eventhub 5.15.1,
`_pyamqp/message.py`, `BatchMessage`.
"""

from collections.abc import Callable, Iterable, Iterator
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
        return b"".join(self._sections())

    def _sections(self) -> Iterator[bytes]:
        if self.header is not None:
            yield self.header.encode()
        yield from _annotations(DELIVERY_ANNOTATIONS, self.delivery_annotations)
        yield from _annotations(MESSAGE_ANNOTATIONS, self.message_annotations)
        if self.properties is not None:
            yield self.properties.encode()
        if self.application_properties is not None:
            yield section(APPLICATION_PROPERTIES, self.application_properties)
        for data in self.data:
            yield section(DATA, data)
        for items in self.sequence:
            yield section(SEQUENCE, items)
        if self.value is not NO_VALUE:
            yield section(VALUE, self.value)
        yield from _annotations(FOOTER, self.footer)


class Section(NamedTuple):
    """Position of a section: its value extends from `start` to `end`."""

    code: int
    offset: int
    start: int
    end: int


def section(code: int, value: Value) -> bytes:
    """Encode one section."""
    return encode_described(code, encode(value))


def _annotations(code: int, pairs: dict[Any, Any] | None) -> Iterator[bytes]:
    """Yield encoded annotations; their keys become symbols, even if passed as `str`."""
    if pairs is not None:
        keyed = {Symbol(key) if type(key) is str else key: pairs[key] for key in pairs}
        yield section(code, keyed)


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
        _, add = _SECTIONS[part.code]
        add(message, value)
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
    return [
        _binary(decode(payload, part.start)[0]) for part in sections(payload) if part.code == DATA
    ]


def _binary(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise CodecError(f"a data section holds a {type(value).__name__}, not binary")
    return value


def _list(value: Value) -> list[Any]:
    if type(value) is not list:
        raise CodecError(f"a sequence section holds a {type(value).__name__}, not a list")
    return value


def _pairs(name: str) -> Callable[[Message, Value], None]:
    def read(message: Message, value: Value) -> None:
        if not isinstance(value, dict):
            raise CodecError(f"{name} hold a {type(value).__name__}, not a map")
        setattr(message, name, value)

    return read


_SECTIONS: dict[int, tuple[str, Callable[[Message, Value], None]]] = {
    HEADER: (
        "amqp:header:list",
        lambda message, value: setattr(message, "header", Header.from_fields(value)),
    ),
    DELIVERY_ANNOTATIONS: ("amqp:delivery-annotations:map", _pairs("delivery_annotations")),
    MESSAGE_ANNOTATIONS: ("amqp:message-annotations:map", _pairs("message_annotations")),
    PROPERTIES: (
        "amqp:properties:list",
        lambda message, value: setattr(message, "properties", Properties.from_fields(value)),
    ),
    APPLICATION_PROPERTIES: ("amqp:application-properties:map", _pairs("application_properties")),
    DATA: ("amqp:data:binary", lambda message, value: message.data.append(_binary(value))),
    SEQUENCE: (
        "amqp:amqp-sequence:list",
        lambda message, value: message.sequence.append(_list(value)),
    ),
    VALUE: ("amqp:amqp-value:*", lambda message, value: setattr(message, "value", value)),
    FOOTER: ("amqp:footer:map", _pairs("footer")),
}
"""Name of each section's descriptor, and the function that adds its value to a message."""

_CODES: dict[int | str, int] = {code: code for code in _SECTIONS}
_CODES.update({name: code for code, (name, _) in _SECTIONS.items()})
