"""Generic decoder of a delivery's payload: any section, any type, any constructor.

Values are as in the azure-eventhub client, which represents strings as bytes; `values` converts
them to the strings of the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from eventhub_checkpoints.amqp.decode import PLAIN
from eventhub_checkpoints.amqp.messages import (
    APPLICATION_PROPERTIES,
    BATCH_FORMAT,
    DATA,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Section,
    sections,
)
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.values import as_text

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.types import Value

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PUBLISHER = b"x-opt-publisher"
PARTITION_KEY = b"x-opt-partition-key"
IN_OTHER_COLUMNS = frozenset({SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME})

PROPERTY_NAMES = (
    *(b"message-id", b"user-id", b"to", b"subject", b"reply-to", b"correlation-id"),
    *(b"content-type", b"content-encoding", b"absolute-expiry-time", b"creation-time"),
    *(b"group-id", b"group-sequence", b"reply-to-group-id"),
)
"""Fields of the properties section, named as the client names system properties."""

Pairs: TypeAlias = dict[Any, Any]


class Event(NamedTuple):
    """Column values of one event, as they were read."""

    number: int
    body: bytes
    offset: Value
    enqueued: int | None
    publisher: Value
    partition_key: Value
    properties: Pairs
    systems: Pairs


def read_events(payload: bytes, message_format: int = 0) -> list[Event]:
    """Read the events of a whole payload.

    Raises:
        CodecError: it is not a message, or one without a sequence number.
    """
    if message_format != BATCH_FORMAT:
        return [read_event(payload)]
    return [read_event(_data(_read(payload, part))) for part in sections(payload) if _is_data(part)]


def read_event(payload: bytes) -> Event:
    """Read one message."""
    found: dict[int, list[Value]] = {}
    for part in sections(payload):
        if part.code in _READ:
            found.setdefault(part.code, []).append(_read(payload, part))
    annotations = _last_map(found, MESSAGE_ANNOTATIONS)
    return Event(
        _number(annotations.get(SEQUENCE_NUMBER)),
        _body(found),
        annotations.get(OFFSET),
        _time(annotations.get(ENQUEUED_TIME)),
        annotations.get(PUBLISHER),
        annotations.get(PARTITION_KEY),
        _last_map(found, APPLICATION_PROPERTIES),
        _systems(found, annotations),
    )


_READ = frozenset({MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA, SEQUENCE, VALUE})


def _is_data(part: Section) -> bool:
    return part.code == DATA


def _read(payload: bytes, part: Section) -> Value:
    value, end = PLAIN.decode(payload, part.start)
    if end != part.end:
        raise CodecError(f"a section ends at offset {part.end}, its value at {end}")
    return value


def _last_map(found: dict[int, list[Value]], code: int) -> Pairs:
    value = found[code][-1] if code in found else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CodecError(f"section 0x{code:02x} holds a {type(value).__name__}, not a map")
    return value


def _systems(found: dict[int, list[Value]], annotations: Pairs) -> Pairs:
    fields = found[PROPERTIES][-1] if PROPERTIES in found else []
    if not isinstance(fields, list) or len(fields) > len(PROPERTY_NAMES):
        raise CodecError(f"properties are a list of at most {len(PROPERTY_NAMES)} fields")
    # As in the client, which leaves out 0 and "" as well as null.
    systems: Pairs = {
        name: value for name, value in zip(PROPERTY_NAMES, fields, strict=False) if value
    }
    for key, value in annotations.items():
        if key not in IN_OTHER_COLUMNS:
            systems[key] = value
    return systems


def _number(value: Value) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise CodecError(f"an event's sequence number is {value!r:.80}")
    return int(value)


def _time(value: Value) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**53:
        raise CodecError(f"an event's enqueued time is {value!r:.80}")
    return int(value)


def _body(found: dict[int, list[Value]]) -> bytes:
    if DATA in found:
        return b"".join(map(_data, found[DATA]))
    body = found[SEQUENCE] if SEQUENCE in found else found.get(VALUE, [None])[-1]
    return body if isinstance(body, bytes) else (as_text(body) or "").encode()


def _data(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise CodecError(f"a data section holds a {type(value).__name__}, not binary")
    return value
