"""Decoder of a delivery's payload without a template: any section, any type, any constructor.

Values are as in the azure-eventhub client, which represents strings as bytes. `read_tail` is a fast
reader for frames of which only the head is known, as for most frames of a hub with many unlike
producers: it calls no function per string and keeps no intermediate values.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from eventhub_checkpoints.amqp import messages
from eventhub_checkpoints.amqp.decode import PLAIN
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.columns import (
    ENQUEUED_TIME,
    IN_OTHER_COLUMNS,
    SEQUENCE_NUMBER,
    as_text,
)

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.types import Value

PROPERTY_NAMES = (
    *(b"message-id", b"user-id", b"to", b"subject", b"reply-to", b"correlation-id"),
    *(b"content-type", b"content-encoding", b"absolute-expiry-time", b"creation-time"),
    *(b"group-id", b"group-sequence", b"reply-to-group-id"),
)
"""Fields of the properties section, named as the client names system properties."""

Pairs: TypeAlias = dict[Any, Any]


class Event(NamedTuple):
    """Parts of one event, as they were read; see `receive.columns.Events`."""

    body: bytes
    properties: Pairs
    systems: Pairs
    annotations: Pairs


def read_events(payload: bytes, message_format: int = 0) -> list[Event]:
    """Read the events of a whole payload.

    Raises:
        CodecError: it is not a message, or one without a sequence number.
    """
    if message_format != messages.BATCH_FORMAT:
        return [read_event(payload)]
    return [
        read_event(_data(_read(payload, part)))
        for part in messages.sections(payload)
        if part.code == messages.DATA
    ]


def read_event(payload: bytes) -> Event:
    """Read one message."""
    sections: dict[int, list[Value]] = {}
    for part in messages.sections(payload):
        if part.code in _READ:
            sections.setdefault(part.code, []).append(_read(payload, part))
    annotations = _last_map(sections, messages.MESSAGE_ANNOTATIONS)
    number, time = annotations.get(SEQUENCE_NUMBER), annotations.get(ENQUEUED_TIME)
    if not _is_int_below(2**63, number):
        raise CodecError(f"an event's sequence number is {number!r:.80}")
    if time is not None and not _is_int_below(2**53, time):
        raise CodecError(f"an event's enqueued time is {time!r:.80}")
    properties = _last_map(sections, messages.APPLICATION_PROPERTIES)
    return Event(_body(sections), properties, _systems(sections, annotations), annotations)


_READ = frozenset(
    {
        *(messages.MESSAGE_ANNOTATIONS, messages.PROPERTIES, messages.APPLICATION_PROPERTIES),
        *(messages.DATA, messages.SEQUENCE, messages.VALUE),
    }
)


def _is_int_below(bound: int, value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


def _read(payload: bytes, part: messages.Section) -> Value:
    value, end = PLAIN.decode(payload, part.start)
    if end != part.end:
        raise CodecError(f"a section ends at offset {part.end}, but its value at {end}")
    return value


def _last_map(sections: dict[int, list[Value]], code: int) -> Pairs:
    value = sections[code][-1] if code in sections else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CodecError(f"section 0x{code:02x} holds a {type(value).__name__}, not a map")
    return value


def _systems(sections: dict[int, list[Value]], annotations: Pairs) -> Pairs:
    fields = sections.get(messages.PROPERTIES, [[]])[-1]
    if not isinstance(fields, list) or len(fields) > len(PROPERTY_NAMES):
        raise CodecError(f"properties must be a list of at most {len(PROPERTY_NAMES)} fields")
    # As in the client, which leaves out 0 and "" as well as null.
    systems = {name: value for name, value in zip(PROPERTY_NAMES, fields, strict=False) if value}
    others = {key: value for key, value in annotations.items() if key not in IN_OTHER_COLUMNS}
    return {**systems, **others}


def _body(sections: dict[int, list[Value]]) -> bytes:
    if messages.DATA in sections:
        return b"".join(map(_data, sections[messages.DATA]))
    body = sections.get(messages.SEQUENCE) or sections.get(messages.VALUE, [None])[-1]
    return body if isinstance(body, bytes) else (as_text(body) or "").encode()


def _data(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise CodecError(f"a data section holds a {type(value).__name__}, not binary")
    return value


SMALL_DESCRIPTOR = b"\x00\x53"
"""Start of a section's descriptor in its usual form; only `read_events` reads other forms."""

_size_at = struct.Struct(">I").unpack_from
_readers = PLAIN.readers
_NULL, _STR8 = 0x40, 0xA1
_PROPERTIES, _PAIRS, _DATA = messages.PROPERTIES, messages.APPLICATION_PROPERTIES, messages.DATA
_UNREADABLE = (CodecError, LookupError, ValueError, OverflowError, TypeError, struct.error)


class Tail(NamedTuple):
    """Parts of an event after its message annotations.

    Attributes:
        systems: the fields of the properties section that are set.
    """

    body: bytes
    properties: Pairs
    systems: Pairs


def read_tail(data: bytes, at: int, end: int) -> Tail | None:
    """Read properties and one data section; return None if the tail is not what most write.

    Args:
        data: some frames.
        at: offset of a section's code, behind `SMALL_DESCRIPTOR`.
        end: end of the frame.
    """
    properties: Pairs = {}
    systems: Pairs = {}
    try:
        while (code := data[at]) != _DATA:
            if code == _PAIRS:
                properties, at = _pairs(data, at + 1, end)
            elif code == _PROPERTIES:
                systems, at = _fields(data, at + 1, end)
            else:
                return None
            if data[at : at + 2] != SMALL_DESCRIPTOR:
                return None
            at += 2
        width = {0xA0: 1, 0xB0: 4}[data[at + 1]]
        begin = at + 2 + width
        stop = begin + (data[at + 2] if width == 1 else _size_at(data, at + 2)[0])
    except _UNREADABLE:
        return None
    # Another section may follow.
    return Tail(data[begin:stop], properties, systems) if stop == end else None


def _compound(data: bytes, at: int, small: int, limit: int) -> tuple[int, int, int]:
    """Return count, begin and end of the items of a list or map with the given small constructor.

    Raises:
        CodecError: it is something else, or ends beyond the limit.
    """
    code = data[at]
    if code == small:
        count, begin, end = data[at + 2], at + 3, at + 2 + data[at + 1]
    elif code == small + 0x10:
        count, begin, end = _size_at(data, at + 5)[0], at + 9, at + 5 + _size_at(data, at + 1)[0]
    else:
        raise CodecError(f"0x{code:02x} at offset {at} is another constructor")
    if end > limit or count > end - begin:
        raise CodecError(f"{count} items at offset {at} cannot end at {end}")
    return count, begin, end


def _pairs(data: bytes, at: int, limit: int) -> tuple[Pairs, int]:
    """Read a map; return it and its end."""
    count, at, end = _compound(data, at, 0xC1, limit)
    pairs: Pairs = {}
    key: Value
    value: Value
    for _ in range(count // 2):
        if data[at] == _STR8:
            begin = at + 2
            at = begin + data[at + 1]
            key = data[begin:at]
        else:
            key, at = _readers[data[at]](data, at + 1, 1)
        if data[at] == _STR8:
            begin = at + 2
            at = begin + data[at + 1]
            value = data[begin:at]
        else:
            value, at = _readers[data[at]](data, at + 1, 1)
        pairs[key] = value
    if at != end or count % 2:
        raise CodecError(f"a map ends at offset {at}, but its size says {end}")
    return pairs, end


def _fields(data: bytes, at: int, limit: int) -> tuple[Pairs, int]:
    """Read the fields of the properties section that are set; return them and the end."""
    if data[at] == 0x45:
        return {}, at + 1
    count, at, end = _compound(data, at, 0xC0, limit)
    if count > len(PROPERTY_NAMES):
        raise CodecError(f"properties have {count} fields")
    fields: Pairs = {}
    for name in PROPERTY_NAMES[:count]:
        if data[at] == _NULL:
            at += 1
            continue
        value, at = _readers[data[at]](data, at + 1, 1)
        # As in `read_event`, a field that is 0 or empty counts as not set.
        if value:
            fields[name] = value
    if at != end:
        raise CodecError(f"a list ends at offset {at}, but its size says {end}")
    return fields, end
