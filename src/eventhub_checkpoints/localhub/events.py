"""Storage form of events: the sender's bytes, preceded by the hub's annotations.

An event is encoded once, when it is stored; a delivery is then a frame head and these bytes.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints.amqp import messages
from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.encode import encode, encode_described
from eventhub_checkpoints.amqp.types import CodecError, Symbol, Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTITION_KEY = "x-opt-partition-key"
_OURS = frozenset({"x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time", PARTITION_KEY})

_SEQUENCE_NUMBER = encode(Symbol("x-opt-sequence-number")) + b"\x81"
_OFFSET = encode(Symbol("x-opt-offset")) + b"\xa1"
_ENQUEUED_TIME = encode(Symbol("x-opt-enqueued-time")) + b"\x83"
_KEY = encode(Symbol(PARTITION_KEY))
_long = struct.Struct(">q").pack


def now() -> Timestamp:
    """Return the host's time."""
    return Timestamp(time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True)
class Event:
    """Message to be stored in a partition.

    Attributes:
        key: its partition key.
        header: the encoded header section, or nothing.
        extra: encoded pairs of other message annotations.
        extra_count: their number, keys and values counted.
        rest: the encoded sections from the properties on, as sent.
    """

    key: str | None
    header: bytes
    extra: bytes
    extra_count: int
    rest: bytes

    def stored(self, sequence_number: int, offset: str, enqueued_time: int) -> bytes:
        """Encode the message as receivers get it. Units: `enqueued_time` in milliseconds."""
        digits = offset.encode()
        pairs = b"".join((
            _SEQUENCE_NUMBER, _long(sequence_number),
            _OFFSET, bytes((len(digits),)), digits,
            _ENQUEUED_TIME, _long(enqueued_time),
            b"" if self.key is None else _KEY + encode(self.key),
            self.extra,
        ))  # fmt: skip
        count = 6 + self.extra_count + (0 if self.key is None else 2)
        return self.header + _annotations(count, pairs) + self.rest


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """Event as a hub has stored it.

    Attributes:
        partition_id: where it is.
        sequence_number: its number there.
        body: all data sections, joined; empty if the body is an AMQP value or sequence.
        properties: the application properties.
        partition_key: None if it was sent without one.
        enqueued_time: float seconds since the epoch.
    """

    partition_id: str
    sequence_number: int
    body: bytes
    properties: dict[str, Any]
    partition_key: str | None
    enqueued_time: float

    def body_as_str(self) -> str:
        """Decode the body as UTF-8."""
        return self.body.decode()


def read_stored(partition_id: str, payload: bytes) -> StoredEvent:
    """Decode an event from the form in which it is delivered."""
    message = messages.decode_message(payload)
    annotations = message.message_annotations or {}
    return StoredEvent(
        partition_id=partition_id,
        sequence_number=annotations["x-opt-sequence-number"],
        body=b"".join(message.data),
        properties=message.application_properties or {},
        partition_key=annotations.get(PARTITION_KEY),
        enqueued_time=annotations["x-opt-enqueued-time"] / 1000,
    )


def _annotations(count: int, pairs: bytes) -> bytes:
    if len(pairs) < 255 and count < 256:
        body = bytes((0xC1, len(pairs) + 1, count)) + pairs
    else:
        body = struct.pack(">BII", 0xD1, len(pairs) + 4, count) + pairs
    return encode_described(messages.MESSAGE_ANNOTATIONS, body)


def make_events(
    bodies: list[bytes], properties: Mapping[str, Any] | None, key: str | None
) -> list[Event]:
    """Build events from plain bodies with common properties and partition key."""
    head = (
        messages.section(messages.APPLICATION_PROPERTIES, dict(properties)) if properties else b""
    )
    return [
        Event(key, b"", b"", 0, head + messages.section(messages.DATA, body)) for body in bodies
    ]


def read_events(payload: bytes, message_format: int) -> list[Event]:
    """Split a producer's delivery into its events.

    Raises:
        CodecError: the payload is not a message, or not a batch where the format says so.
    """
    if message_format != messages.BATCH_FORMAT:
        return [_read(payload, None)]
    key = _read(payload, None).key
    return [_read(message, key) for message in messages.split_batch(payload)]


def _read(payload: bytes, key: str | None) -> Event:
    header, extra, count, start = b"", b"", 0, len(payload)
    for part in messages.sections(payload):
        if part.code == messages.HEADER:
            header = encode_described(messages.HEADER, payload[part.start : part.end])
        elif part.code == messages.MESSAGE_ANNOTATIONS:
            own_key, extra, count = _read_annotations(payload, part.start)
            key = own_key or key
        elif part.code != messages.DELIVERY_ANNOTATIONS:
            start = min(start, part.offset)
    return Event(key, header, extra, count, payload[start:])


def _read_annotations(payload: bytes, start: int) -> tuple[str | None, bytes, int]:
    pairs, _ = decode(payload, start)
    if not isinstance(pairs, dict):
        raise CodecError("message annotations are not a map")
    key = pairs.get(PARTITION_KEY)
    if isinstance(key, bytes):
        key = key.decode("utf-8", "replace")
    others = [(name, value) for name, value in pairs.items() if name not in _OURS]
    encoded = b"".join(encode(item) for pair in others for item in pair)
    return key if isinstance(key, str) else None, encoded, 2 * len(others)
