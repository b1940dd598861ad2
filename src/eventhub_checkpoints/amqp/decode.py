"""Decoder of AMQP values that never reads past the end of a buffer.

Rule 1: whatever the input, the outcome is a value or a `CodecError`.
Rule 2: work and memory are bounded by the input: nesting is at most `MAX_DEPTH` deep, and an
array of elements of zero width has at most `MAX_EMPTY_ELEMENTS` of them.

Source: OASIS AMQP 1.0, part 1, sections 1.2 and 1.6.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from eventhub_checkpoints.amqp import types
from eventhub_checkpoints.amqp.types import Array, CodecError, Described, Symbol, Value

MAX_DEPTH = 64
MAX_EMPTY_ELEMENTS = 256

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[Buffer, int, int], tuple[Value, int]]
"""Reader of the value after a constructor, called with the buffer, its offset there and the depth
of nesting. It raises `IndexError` or `struct.error` where the bytes end too early.
"""

_size32 = struct.Struct(">I").unpack_from


def _unknown(code: int) -> Read:
    def read(buffer: Buffer, at: int, depth: int) -> tuple[Value, int]:
        raise CodecError(f"0x{code:02x} at offset {at - 1} is not an AMQP constructor")

    return read


def _constant(value: Value) -> Read:
    return lambda buffer, at, depth: (value, at)


def _number(form: str, kind: type | None = None) -> Read:
    layout = struct.Struct(form)
    unpack, size = layout.unpack_from, layout.size
    if kind is None:
        return lambda buffer, at, depth: (unpack(buffer, at)[0], at + size)
    return lambda buffer, at, depth: (kind(unpack(buffer, at)[0]), at + size)


def _boolean(buffer: Buffer, at: int, depth: int) -> tuple[bool, int]:
    octet = buffer[at]
    if octet > 1:
        raise CodecError(f"0x{octet:02x} at offset {at} is not an AMQP boolean")
    return octet == 1, at + 1


def _char(buffer: Buffer, at: int, depth: int) -> tuple[types.Char, int]:
    (code,) = _size32(buffer, at)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise CodecError(f"0x{code:08x} at offset {at} is not a Unicode character")
    return types.Char(chr(code)), at + 4


def _uuid(buffer: Buffer, at: int, depth: int) -> tuple[uuid.UUID, int]:
    return uuid.UUID(bytes=_exactly(buffer, at, 16)), at + 16


def _decimal(form: types.Format, kind: type[Decimal]) -> Read:
    def read(buffer: Buffer, at: int, depth: int) -> tuple[Decimal, int]:
        value = types.decode_decimal(_exactly(buffer, at, form.octets), form)
        return (value if kind is Decimal else kind(value)), at + form.octets

    return read


def _binary(width: int) -> Read:
    """Make the reader for binary values with a size of `width` bytes."""

    def read(buffer: Buffer, at: int, depth: int) -> tuple[bytes, int]:
        start, end = _span(buffer, at, width)
        return bytes(buffer[start:end]), end

    return read


def _exactly(buffer: Buffer, at: int, size: int) -> bytes:
    if at + size > len(buffer):
        raise IndexError
    return bytes(buffer[at : at + size])


def _span(buffer: Buffer, at: int, width: int) -> tuple[int, int]:
    """Return start and end of the content that follows a size of `width` bytes."""
    start = at + width
    end = start + (buffer[at] if width == 1 else _size32(buffer, at)[0])
    if end > len(buffer):
        raise IndexError
    return start, end


def _compound(buffer: Buffer, at: int, width: int, depth: int) -> tuple[int, int, int]:
    """Return count, start of the items and end of a list, map or array."""
    _check_depth(depth)
    start, end = _span(buffer, at, width)
    if end - start < width:
        raise CodecError(f"the compound value at offset {at - 1} has no room for its own count")
    count = buffer[start] if width == 1 else _size32(buffer, start)[0]
    return count, start + width, end


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise CodecError(f"AMQP values are nested deeper than {MAX_DEPTH} levels")


def _check_end(at: int, end: int) -> None:
    if at != end:
        raise CodecError(f"a compound value ends at offset {at}, but its size says {end}")


_SCALARS: dict[int, Read] = {
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(types.UInt(0)),
    0x44: _constant(types.ULong(0)),
    0x45: lambda buffer, at, depth: ([], at),
    0x50: _number(">B", types.UByte),
    0x51: _number(">b", types.Byte),
    0x52: _number(">B", types.UInt),
    0x53: _number(">B", types.ULong),
    0x54: _number(">b", types.Int),
    0x55: _number(">b"),
    0x56: _boolean,
    0x60: _number(">H", types.UShort),
    0x61: _number(">h", types.Short),
    0x70: _number(">I", types.UInt),
    0x71: _number(">i", types.Int),
    0x72: _number(">f", types.Float),
    0x73: _char,
    0x74: _decimal(types.DECIMAL32, types.Decimal32),
    0x80: _number(">Q", types.ULong),
    0x81: _number(">q"),
    0x82: _number(">d"),
    0x83: _number(">q", types.Timestamp),
    0x84: _decimal(types.DECIMAL64, types.Decimal64),
    0x94: _decimal(types.DECIMAL128, Decimal),
    0x98: _uuid,
}


class Decoder:
    """Decoder with a table of readers by constructor.

    Args:
        errors: how to handle strings that are not UTF-8: "strict" raises `CodecError`; any other
            error handler of `str` is used as it is, for instance "replace" for a reader that must
            not lose an event.

    Attributes:
        readers: reader of the value behind each constructor; see `Read`.
    """

    def __init__(self, errors: str = "strict") -> None:
        table = self.readers = [_SCALARS.get(code) or _unknown(code) for code in range(256)]
        table[0x00] = self._described
        for code, width in ((0xA0, 1), (0xB0, 4)):
            table[code] = _binary(width)
            table[code + 1] = self._text(width, str, "utf-8", errors)
            table[code + 3] = self._text(width, Symbol, "ascii", errors)
        for code, width in ((0xC0, 1), (0xD0, 4)):
            table[code] = self._list(width)
            table[code + 1] = self._map(width)
            table[code + 0x20] = self._array(width)

    def decode(self, buffer: Buffer, offset: int = 0) -> tuple[Value, int]:
        """Read the value that starts at `offset`.

        Returns:
            The value, and the offset of the byte after it.

        Raises:
            CodecError: the bytes end too early or are not an AMQP value.
        """
        if offset < 0:
            raise CodecError(f"the offset of an AMQP value must be 0 or more, not {offset}")
        try:
            return self._value(buffer, offset, 0)
        except (struct.error, IndexError):
            raise CodecError(
                f"the AMQP value at offset {offset} is cut off: only {len(buffer)} bytes are there"
            ) from None
        except (UnicodeDecodeError, OverflowError) as error:
            raise CodecError(f"the AMQP value at offset {offset} is invalid: {error}") from error

    def _value(self, buffer: Buffer, at: int, depth: int) -> tuple[Value, int]:
        return self.readers[buffer[at]](buffer, at + 1, depth)

    def _described(self, buffer: Buffer, at: int, depth: int) -> tuple[Value, int]:
        _check_depth(depth)
        descriptor, at = self._value(buffer, at, depth + 1)
        value, at = self._value(buffer, at, depth + 1)
        return self._describe(descriptor, value), at

    def _describe(self, descriptor: Value, value: Value) -> Value:
        return Described(descriptor, value)

    def _text(self, width: int, kind: type[str], encoding: str, errors: str) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[str, int]:
            start, end = _span(buffer, at, width)
            text = str(buffer[start:end], encoding, errors)
            return (text if kind is str else kind(text)), end

        return read

    def _list(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[list[Value], int]:
            count, at, end = _compound(buffer, at, width, depth)
            if count > end - at:
                raise CodecError(f"a list of {count} items cannot fit into {end - at} bytes")
            items = []
            for _ in range(count):
                item, at = self._value(buffer, at, depth + 1)
                items.append(item)
            _check_end(at, end)
            return items, end

        return read

    def _map(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[dict[Value, Value], int]:
            count, at, end = _compound(buffer, at, width, depth)
            if count > end - at or count % 2:
                raise CodecError(f"a map of {count} items cannot fit into {end - at} bytes")
            pairs: dict[Value, Value] = {}
            for _ in range(count // 2):
                key, at = self._value(buffer, at, depth + 1)
                value, at = self._value(buffer, at, depth + 1)
                try:
                    pairs[key] = value
                except TypeError:
                    kind = type(key).__name__
                    raise CodecError(f"a map key of type {kind} is not supported") from None
            _check_end(at, end)
            return pairs, end

        return read

    def _array(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[Array, int]:
            count, at, end = _compound(buffer, at, width, depth)
            if count == 0:
                # Some peers omit the constructor of an empty array.
                return Array(), end
            element, at = self._element(buffer, at, depth + 1)
            if count > max(end - at, MAX_EMPTY_ELEMENTS):
                raise CodecError(f"an array of {count} items cannot fit into {end - at} bytes")
            items = Array()
            for _ in range(count):
                item, at = element(buffer, at, depth + 1)
                items.append(item)
            _check_end(at, end)
            return items, end

        return read

    def _element(self, buffer: Buffer, at: int, depth: int) -> tuple[Read, int]:
        """Read the single constructor that all elements of an array share."""
        code = buffer[at]
        if code:
            return self.readers[code], at + 1
        _check_depth(depth)
        descriptor, at = self._value(buffer, at + 1, depth + 1)
        inner, at = self._element(buffer, at, depth + 1)

        def read(buffer: Buffer, at: int, depth: int) -> tuple[Value, int]:
            value, at = inner(buffer, at, depth + 1)
            return self._describe(descriptor, value), at

        return read, at


class PlainDecoder(Decoder):
    """Decoder to the values of the azure-eventhub client: strings are bytes, types are dropped.

    A described value is decoded without its descriptor; a delivery state is a map from its name.

    Source: azure-eventhub 5.15.1, `_pyamqp/_decode.py`, `_decode_described`.
    """

    def __init__(self) -> None:
        super().__init__()
        for code in (0xA0, 0xB0):
            self.readers[code + 1] = self.readers[code + 3] = self.readers[code]

    def _describe(self, descriptor: Value, value: Value) -> Value:
        name = _STATES.get(descriptor) if isinstance(descriptor, int) else None
        return value if name is None else {name: value}


_STATES = {0x23: "received", 0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}

STRICT = Decoder()
PLAIN = PlainDecoder()

decode = STRICT.decode
"""Read one value strictly; see `Decoder.decode`."""


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
        _check_depth(depth)
        return _skip(buffer, _skip(buffer, at + 1, depth + 1), depth + 1)
    width = WIDTHS.get(code >> 4)
    if width is not None:
        return at + 1 + width
    if code < 0x40:
        raise CodecError(f"0x{code:02x} at offset {at} is not an AMQP constructor")
    # All other constructors are followed by a size: one byte if bit 4 is clear, else four.
    return _span(buffer, at + 1, 4 if code & 0x10 else 1)[1]


WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
