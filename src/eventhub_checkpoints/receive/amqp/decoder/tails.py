"""What a producer wrote of a message, in one go: its properties, and one data section in the end.

It is read so where a frame begins as others did and goes on as none before, which in a hub of many
unlike producers is most frames; so nothing is called for a text, and nothing kept of the way.
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
"""How a section's descriptor starts; sections whose descriptors are spelled otherwise are read the
generic way."""

_size_at = struct.Struct(">I").unpack_from
_readers = PLAIN.readers
_NULL, _STR8 = 0x40, 0xA1
_UNREADABLE = (CodecError, LookupError, ValueError, OverflowError, TypeError, struct.error)


class Tail(NamedTuple):
    """What stands behind the message annotations, values as the azure-eventhub client gives them.

    Attributes:
        body: of the data section.
        properties: application properties.
        systems: the fields of the properties section that are set.
    """

    body: bytes
    properties: Pairs
    systems: Pairs


def read_tail(data: bytes, at: int, end: int) -> Tail | None:
    """Read what is left of a frame; None where that is not what most producers write.

    Args:
        data: some frames.
        at: where a section's code lies, behind `SMALL_DESCRIPTOR`.
        end: of the frame.
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
    # What lies behind it may be one section more.
    return Tail(data[begin:stop], properties, systems) if stop == end else None


def _compound(data: bytes, at: int, small: int, limit: int) -> tuple[int, int, int]:
    """Count, begin and end of the items of a list or map, whose small constructor is given.

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
    """A map, and where it ends."""
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
    """The fields of the properties section that are set, and where it ends."""
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
        # As in the generic way: what is 0 or empty counts as not set.
        if value:
            found[name] = value
    if at != end:
        raise CodecError(f"a list ends at offset {at}, its size says {end}")
    return found, end
