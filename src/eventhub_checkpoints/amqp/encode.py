"""Encoder of AMQP values, which uses the shortest constructor of each type."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from eventhub_checkpoints.amqp import types
from eventhub_checkpoints.amqp.types import CodecError, Value

Write: TypeAlias = Callable[[Any], bytes]


def encode(value: Value) -> bytes:
    """Encode a value; its Python class determines the AMQP type.

    Raises:
        CodecError: AMQP has no such type, or the number or string does not fit it.
    """
    try:
        return _writer(type(value))(value)
    except (struct.error, UnicodeEncodeError, OverflowError) as error:
        raise CodecError(
            f"cannot write {value!r:.80} as AMQP {type(value).__name__}: {error}"
        ) from error
    except RecursionError:
        raise CodecError("cannot write a value that is nested too deeply") from None


def encode_list_of(items: Sequence[bytes]) -> bytes:
    """Encode a list of items that are encoded already; never as list0.

    The azure-eventhub client requires that: it expects the fields of a frame after a count.
    """
    return _compound(0xC0, len(items), b"".join(items))


def encode_described(descriptor: int, body: bytes) -> bytes:
    """Prefix an encoded value with a numeric descriptor in its three-byte form."""
    return b"\x00\x53" + bytes((descriptor,)) + body


def _writer(kind: type) -> Write:
    for base in kind.__mro__:
        if base in _WRITERS:
            return _WRITERS[base]
    return _refuse


def _full(code: bytes, write: Write) -> Write:
    return lambda value: code + write(value)


def _refuse(value: Value) -> NoReturn:
    raise CodecError(f"AMQP has no type for a {type(value).__name__}")


def _compound(code: int, count: int, body: bytes) -> bytes:
    """Encode list8, map8 or array8 (`code`), or the wide form where it does not fit."""
    size = len(body) + 1
    if size < 256 and count < 256:
        return bytes((code, size, count)) + body
    return bytes((code + 0x10,)) + _wide(count, body)


def _wide(count: int, body: bytes) -> bytes:
    return struct.pack(">II", len(body) + 4, count) + body


def _variable(code: int, body: bytes) -> bytes:
    size = len(body)
    if size < 256:
        return bytes((code, size)) + body
    return struct.pack(">BI", code + 0x10, size) + body


def _small(short: int, full: int, form: str, low: int, high: int, zero: int | None = None) -> Write:
    """Make an encoder that uses the one-byte form between `low` and `high`."""
    small, wide = struct.Struct(">B" + ("b" if low else "B")).pack, struct.Struct(">B" + form).pack

    def write(value: int) -> bytes:
        if zero is not None and value == 0:
            return bytes((zero,))
        return small(short, value) if low <= value <= high else wide(full, value)

    return write


def _code_point(value: str) -> bytes:
    if len(value) != 1:
        raise CodecError(f"an AMQP char must be one character, not {value!r}")
    return struct.pack(">I", ord(value))


def _list(value: Iterable[Value]) -> bytes:
    items = [encode(item) for item in value]
    return encode_list_of(items) if items else b"\x45"


def _pairs(value: Mapping[Value, Value]) -> bytes:
    return b"".join(encode(item) for pair in value.items() for item in pair)


def _array_body(items: list[Value]) -> tuple[bytes, bytes]:
    """Return the constructor that all items share, and the items without it."""
    if not items:
        return b"\x40", b""
    kind = type(items[0])
    if any(type(item) is not kind for item in items):
        raise CodecError("the items of an AMQP array must all be of one type")
    if kind is types.Described:
        return _described_body(items)
    code, writer = _ELEMENTS.get(kind, (b"", _refuse))
    return code, b"".join(map(writer, items))


def _described_body(items: list[types.Described]) -> tuple[bytes, bytes]:
    descriptor = encode(items[0].descriptor)
    if any(encode(item.descriptor) != descriptor for item in items):
        raise CodecError("the items of an AMQP array must share one descriptor")
    code, body = _array_body([item.value for item in items])
    return b"\x00" + descriptor + code, body


def _sized(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


_ELEMENTS: dict[type, tuple[bytes, Write]] = {
    type(None): (b"\x40", lambda value: b""),
    bool: (b"\x56", lambda value: b"\x01" if value else b"\x00"),
    types.UByte: (b"\x50", struct.Struct(">B").pack),
    types.UShort: (b"\x60", struct.Struct(">H").pack),
    types.UInt: (b"\x70", struct.Struct(">I").pack),
    types.ULong: (b"\x80", struct.Struct(">Q").pack),
    types.Byte: (b"\x51", struct.Struct(">b").pack),
    types.Short: (b"\x61", struct.Struct(">h").pack),
    types.Int: (b"\x71", struct.Struct(">i").pack),
    int: (b"\x81", struct.Struct(">q").pack),
    types.Float: (b"\x72", struct.Struct(">f").pack),
    float: (b"\x82", struct.Struct(">d").pack),
    types.Decimal32: (b"\x74", lambda value: types.encode_decimal(value, types.DECIMAL32)),
    types.Decimal64: (b"\x84", lambda value: types.encode_decimal(value, types.DECIMAL64)),
    Decimal: (b"\x94", lambda value: types.encode_decimal(value, types.DECIMAL128)),
    types.Char: (b"\x73", _code_point),
    types.Timestamp: (b"\x83", struct.Struct(">q").pack),
    uuid.UUID: (b"\x98", lambda value: value.bytes),
    bytes: (b"\xb0", _sized),
    str: (b"\xb1", lambda value: _sized(value.encode())),
    types.Symbol: (b"\xb3", lambda value: _sized(value.encode("ascii"))),
    list: (b"\xd0", lambda value: _wide(len(value), b"".join(map(encode, value)))),
    dict: (b"\xd1", lambda value: _wide(2 * len(value), _pairs(value))),
    types.Array: (b"\xf0", lambda value: _wide(len(value), b"".join(_array_body(value)))),
}
"""Constructor of each type in an array, and the encoder of what follows it."""

_WRITERS: dict[type, Write] = {
    **{kind: _full(*element) for kind, element in _ELEMENTS.items()},
    bool: lambda value: b"\x41" if value else b"\x42",
    types.UInt: _small(0x52, 0x70, "I", 0, 255, zero=0x43),
    types.ULong: _small(0x53, 0x80, "Q", 0, 255, zero=0x44),
    types.Int: _small(0x54, 0x71, "i", -128, 127),
    int: _small(0x55, 0x81, "q", -128, 127),
    bytes: lambda value: _variable(0xA0, value),
    bytearray: lambda value: _variable(0xA0, bytes(value)),
    memoryview: lambda value: _variable(0xA0, bytes(value)),
    str: lambda value: _variable(0xA1, value.encode()),
    types.Symbol: lambda value: _variable(0xA3, value.encode("ascii")),
    list: _list,
    tuple: _list,
    dict: lambda value: _compound(0xC1, 2 * len(value), _pairs(value)),
    types.Array: lambda value: _compound(0xE0, len(value), b"".join(_array_body(value))),
    types.Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
}
"""Encoder of each type, with the shortest constructor."""
