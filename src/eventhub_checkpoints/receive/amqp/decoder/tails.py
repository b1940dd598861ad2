"""Fast reader of the part of a message that its producer wrote: properties and one data section.

It is used where the head of a frame is known and the rest is not, as for most frames of a hub with
many unlike producers. Therefore it calls no function per string and keeps no intermediate values.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from eventhub_checkpoints.amqp.decode import PLAIN
from eventhub_checkpoints.amqp.messages import APPLICATION_PROPERTIES, DATA, PROPERTIES
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.events import PROPERTY_NAMES

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.types import Value
    from eventhub_checkpoints.receive.amqp.decoder.events import Pairs

SMALL_DESCRIPTOR = b"\x00\x53"
"""Start of a section's descriptor in its usual form; the generic decoder reads sections with
another form.
"""

_size_at = struct.Struct(">I").unpack_from
_readers = PLAIN.readers
_NULL, _STR8 = 0x40, 0xA1
_UNREADABLE = (CodecError, LookupError, ValueError, OverflowError, TypeError, struct.error)


class Tail(NamedTuple):
    """Sections behind the message annotations, with values as in the azure-eventhub client.

    Attributes:
        body: content of the data section.
        properties: application properties.
        systems: the fields of the properties section that are set.
    """

    body: bytes
    properties: Pairs
    systems: Pairs


def read_tail(data: bytes, at: int, end: int) -> Tail | None:
    """Read the rest of a frame; return None if it is not what most producers write.

    Args:
        data: some frames.
        at: offset of a section's code, behind `SMALL_DESCRIPTOR`.
        end: end of the frame.
    """
    properties: Pairs = {}
    systems: Pairs = {}
    try:
        while (code := data[at]) != DATA:
            if code == APPLICATION_PROPERTIES:
                properties, at = _pairs(data, at + 1, end)
            elif code == PROPERTIES:
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
        CodecError: it is something else, or ends behind the limit.
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
        raise CodecError(f"a map ends at offset {at}, its size says {end}")
    return pairs, end


def _fields(data: bytes, at: int, limit: int) -> tuple[Pairs, int]:
    """Read the fields of the properties section that are set; return them and the end."""
    if data[at] == 0x45:
        return {}, at + 1
    count, at, end = _compound(data, at, 0xC0, limit)
    if count > len(PROPERTY_NAMES):
        raise CodecError(f"properties have {count} fields")
    found: Pairs = {}
    for name in PROPERTY_NAMES[:count]:
        if data[at] == _NULL:
            at += 1
            continue
        value, at = _readers[data[at]](data, at + 1, 1)
        # As in the generic decoder, a field that is 0 or empty counts as not set.
        if value:
            found[name] = value
    if at != end:
        raise CodecError(f"a list ends at offset {at}, its size says {end}")
    return found, end
