"""Readers for AMQP's constructors: how each value is laid out, and where it ends.

Readers get a buffer, an offset behind the constructor and the depth of nesting. They raise
`IndexError` or `struct.error` where the bytes end too early; `decode` turns these into
`CodecError`.

Source: OASIS AMQP 1.0, part 1, sections 1.2 and 1.6.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from eventhub_checkpoints.amqp.types import (
    DECIMAL32,
    DECIMAL64,
    DECIMAL128,
    Byte,
    Char,
    CodecError,
    Decimal32,
    Decimal64,
    Float,
    Format,
    Int,
    Short,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
    decode_decimal,
)

MAX_DEPTH = 64
MAX_EMPTY_ELEMENTS = 256

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[Buffer, int, int], tuple[Value, int]]

_size32 = struct.Struct(">I").unpack_from


def unknown(code: int) -> Read:
    """Make the reader for a byte that is not a constructor."""

    def read(buffer: Buffer, at: int, depth: int) -> tuple[Value, int]:
        raise CodecError(f"0x{code:02x} at offset {at - 1} is no AMQP constructor")

    return read


def _constant(value: Value) -> Read:
    return lambda buffer, at, depth: (value, at)


def _plain(form: str) -> Read:
    layout = struct.Struct(form)
    unpack, size = layout.unpack_from, layout.size
    return lambda buffer, at, depth: (unpack(buffer, at)[0], at + size)


def _number(form: str, kind: type) -> Read:
    layout = struct.Struct(form)
    unpack, size = layout.unpack_from, layout.size
    return lambda buffer, at, depth: (kind(unpack(buffer, at)[0]), at + size)


def _boolean(buffer: Buffer, at: int, depth: int) -> tuple[bool, int]:
    octet = buffer[at]
    if octet > 1:
        raise CodecError(f"0x{octet:02x} at offset {at} is no AMQP boolean")
    return octet == 1, at + 1


def _char(buffer: Buffer, at: int, depth: int) -> tuple[Char, int]:
    (code,) = _size32(buffer, at)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise CodecError(f"0x{code:08x} at offset {at} is no Unicode character")
    return Char(chr(code)), at + 4


def _uuid(buffer: Buffer, at: int, depth: int) -> tuple[uuid.UUID, int]:
    return uuid.UUID(bytes=_exactly(buffer, at, 16)), at + 16


def _decimal(form: Format, kind: type[Decimal]) -> Read:
    def read(buffer: Buffer, at: int, depth: int) -> tuple[Decimal, int]:
        value = decode_decimal(_exactly(buffer, at, form.octets), form)
        return (value if kind is Decimal else kind(value)), at + form.octets

    return read


def binary(width: int) -> Read:
    """Make the reader for binary values with a size of `width` bytes."""

    def read(buffer: Buffer, at: int, depth: int) -> tuple[bytes, int]:
        start, end = span(buffer, at, width)
        return bytes(buffer[start:end]), end

    return read


def _exactly(buffer: Buffer, at: int, size: int) -> bytes:
    if at + size > len(buffer):
        raise IndexError
    return bytes(buffer[at : at + size])


def span(buffer: Buffer, at: int, width: int) -> tuple[int, int]:
    """Return start and end of the content that follows a size of `width` bytes."""
    start = at + width
    end = start + (buffer[at] if width == 1 else _size32(buffer, at)[0])
    if end > len(buffer):
        raise IndexError
    return start, end


def compound(buffer: Buffer, at: int, width: int, depth: int) -> tuple[int, int, int]:
    """Return count, start of the items and end of a list, map or array."""
    check_depth(depth)
    start, end = span(buffer, at, width)
    if end - start < width:
        raise CodecError(f"the compound value at offset {at - 1} has no room for its own count")
    count = buffer[start] if width == 1 else _size32(buffer, start)[0]
    return count, start + width, end


def check_depth(depth: int) -> None:
    """Raise if nesting is too deep."""
    if depth >= MAX_DEPTH:
        raise CodecError(f"AMQP values are nested deeper than {MAX_DEPTH} levels")


def check_end(at: int, end: int) -> None:
    """Raise if the items do not end where the size says."""
    if at != end:
        raise CodecError(f"a compound value ends at offset {at}, its size says {end}")


def put(pairs: dict[Value, Value], key: Value, value: Value) -> None:
    """Add a pair to a map; raise if Python cannot hash the key."""
    try:
        pairs[key] = value
    except TypeError:
        raise CodecError(f"a map key of type {type(key).__name__} is not supported") from None


SCALARS: dict[int, Read] = {
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: lambda buffer, at, depth: ([], at),
    0x50: _number(">B", UByte),
    0x51: _number(">b", Byte),
    0x52: _number(">B", UInt),
    0x53: _number(">B", ULong),
    0x54: _number(">b", Int),
    0x55: _plain(">b"),
    0x56: _boolean,
    0x60: _number(">H", UShort),
    0x61: _number(">h", Short),
    0x70: _number(">I", UInt),
    0x71: _number(">i", Int),
    0x72: _number(">f", Float),
    0x73: _char,
    0x74: _decimal(DECIMAL32, Decimal32),
    0x80: _number(">Q", ULong),
    0x81: _plain(">q"),
    0x82: _plain(">d"),
    0x83: _number(">q", Timestamp),
    0x84: _decimal(DECIMAL64, Decimal64),
    0x94: _decimal(DECIMAL128, Decimal),
    0x98: _uuid,
}


def skip(buffer: Buffer, offset: int = 0) -> int:
    """Find the byte after the value that starts at `offset`, without reading the value.

    Raises:
        CodecError: the bytes end too early or do not start an AMQP value.
    """
    try:
        end = _skip(buffer, offset, 0)
    except (struct.error, IndexError):
        end = len(buffer) + 1
    if end > len(buffer):
        raise CodecError(f"the AMQP value at offset {offset} is cut off")
    return end


def _skip(buffer: Buffer, at: int, depth: int) -> int:
    code = buffer[at]
    if code == 0:
        check_depth(depth)
        return _skip(buffer, _skip(buffer, at + 1, depth + 1), depth + 1)
    width = _WIDTHS.get(code >> 4)
    if width is not None:
        return at + 1 + width
    if code < 0x40:
        raise CodecError(f"0x{code:02x} at offset {at} is no AMQP constructor")
    # The others have a size: of one byte where bit 4 is clear, else of four.
    return span(buffer, at + 1, 4 if code & 0x10 else 1)[1]


_WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
