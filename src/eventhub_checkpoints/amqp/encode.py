"""Encoder of AMQP values, which uses the shortest constructor of each type."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from eventhub_checkpoints.amqp.types import (
    DECIMAL32,
    DECIMAL64,
    DECIMAL128,
    Array,
    Byte,
    Char,
    CodecError,
    Decimal32,
    Decimal64,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
    encode_decimal,
)

Write: TypeAlias = Callable[[Any], bytes]


def encode(value: Value) -> bytes:
    """Encode a value; its Python class determines the AMQP type.

    Raises:
        CodecError: AMQP has no such type, or the number or string does not fit it.
    """
    try:
        return _writer(type(value), _WRITERS)(value)
    except (struct.error, UnicodeEncodeError, OverflowError) as error:
        raise CodecError(
            f"cannot write {value!r:.80} as AMQP {type(value).__name__}: {error}"
        ) from error
    except RecursionError:
        raise CodecError("cannot write a value that is nested too deeply") from None


def encode_list_of(items: Sequence[bytes]) -> bytes:
    """Encode a list of items that are encoded already; never as list0.

    The azure-eventhub client requires that: it expects the fields of a frame behind a count.
    """
    return _compound(0xC0, len(items), b"".join(items))


def encode_described(descriptor: int, body: bytes) -> bytes:
    """Prefix an encoded value with a numeric descriptor in its three-byte form."""
    return b"\x00\x53" + bytes((descriptor,)) + body


def _writer(kind: type, table: Mapping[type, Write]) -> Write:
    writer = table.get(kind)
    if writer is not None:
        return writer
    for base in kind.__mro__:
        if base in table:
            return table[base]
    return _refuse


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
    one, layout = struct.Struct(">B" + ("b" if low else "B")).pack, struct.Struct(">B" + form).pack

    def write(value: int) -> bytes:
        if zero is not None and value == 0:
            return bytes((zero,))
        return one(short, value) if low <= value <= high else layout(full, value)

    return write


def _fixed(code: int, form: str) -> Write:
    layout = struct.Struct(">B" + form).pack
    return lambda value: layout(code, value)


def _code_point(value: str) -> bytes:
    if len(value) != 1:
        raise CodecError(f"an AMQP char is one character, not {value!r}")
    return struct.pack(">I", ord(value))


def _list(value: Iterable[Value]) -> bytes:
    items = [encode(item) for item in value]
    return encode_list_of(items) if items else b"\x45"


def _pairs(value: Mapping[Value, Value]) -> bytes:
    return b"".join(encode(item) for pair in value.items() for item in pair)


def _array(value: Array) -> bytes:
    code, body = _array_body(value)
    return _compound(0xE0, len(value), code + body)


def _array_body(items: list[Value]) -> tuple[bytes, bytes]:
    """Return the constructor that all items share, and the items without it."""
    if not items:
        return b"\x40", b""
    kind = type(items[0])
    if any(type(item) is not kind for item in items):
        raise CodecError("the items of an AMQP array must all be of one type")
    if kind is Described:
        return _described_body(items)
    code, writer = _ELEMENTS.get(kind, (b"", _refuse))
    return code, b"".join(map(writer, items))


def _described_body(items: list[Described]) -> tuple[bytes, bytes]:
    descriptor = encode(items[0].descriptor)
    if any(encode(item.descriptor) != descriptor for item in items):
        raise CodecError("the items of an AMQP array must share one descriptor")
    code, body = _array_body([item.value for item in items])
    return b"\x00" + descriptor + code, body


def _sized(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _wide_array(value: Array) -> bytes:
    code, body = _array_body(value)
    return _wide(len(value), code + body)


_WRITERS: dict[type, Write] = {
    type(None): lambda value: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _fixed(0x50, "B"),
    UShort: _fixed(0x60, "H"),
    UInt: _small(0x52, 0x70, "I", 0, 255, zero=0x43),
    ULong: _small(0x53, 0x80, "Q", 0, 255, zero=0x44),
    Byte: _fixed(0x51, "b"),
    Short: _fixed(0x61, "h"),
    Int: _small(0x54, 0x71, "i", -128, 127),
    int: _small(0x55, 0x81, "q", -128, 127),
    Float: _fixed(0x72, "f"),
    float: _fixed(0x82, "d"),
    Decimal32: lambda value: b"\x74" + encode_decimal(value, DECIMAL32),
    Decimal64: lambda value: b"\x84" + encode_decimal(value, DECIMAL64),
    Decimal: lambda value: b"\x94" + encode_decimal(value, DECIMAL128),
    Char: lambda value: b"\x73" + _code_point(value),
    Timestamp: _fixed(0x83, "q"),
    uuid.UUID: lambda value: b"\x98" + value.bytes,
    bytes: lambda value: _variable(0xA0, value),
    bytearray: lambda value: _variable(0xA0, bytes(value)),
    memoryview: lambda value: _variable(0xA0, bytes(value)),
    str: lambda value: _variable(0xA1, value.encode()),
    Symbol: lambda value: _variable(0xA3, value.encode("ascii")),
    list: _list,
    tuple: _list,
    dict: lambda value: _compound(0xC1, 2 * len(value), _pairs(value)),
    Array: _array,
    Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
}

_ELEMENTS: dict[type, tuple[bytes, Write]] = {
    type(None): (b"\x40", lambda value: b""),
    bool: (b"\x56", lambda value: b"\x01" if value else b"\x00"),
    UByte: (b"\x50", struct.Struct(">B").pack),
    UShort: (b"\x60", struct.Struct(">H").pack),
    UInt: (b"\x70", struct.Struct(">I").pack),
    ULong: (b"\x80", struct.Struct(">Q").pack),
    Byte: (b"\x51", struct.Struct(">b").pack),
    Short: (b"\x61", struct.Struct(">h").pack),
    Int: (b"\x71", struct.Struct(">i").pack),
    int: (b"\x81", struct.Struct(">q").pack),
    Float: (b"\x72", struct.Struct(">f").pack),
    float: (b"\x82", struct.Struct(">d").pack),
    Decimal32: (b"\x74", lambda value: encode_decimal(value, DECIMAL32)),
    Decimal64: (b"\x84", lambda value: encode_decimal(value, DECIMAL64)),
    Decimal: (b"\x94", lambda value: encode_decimal(value, DECIMAL128)),
    Char: (b"\x73", _code_point),
    Timestamp: (b"\x83", struct.Struct(">q").pack),
    uuid.UUID: (b"\x98", lambda value: value.bytes),
    bytes: (b"\xb0", _sized),
    str: (b"\xb1", lambda value: _sized(value.encode())),
    Symbol: (b"\xb3", lambda value: _sized(value.encode("ascii"))),
    list: (b"\xd0", lambda value: _wide(len(value), b"".join(map(encode, value)))),
    dict: (b"\xd1", lambda value: _wide(2 * len(value), _pairs(value))),
    Array: (b"\xf0", _wide_array),
}
