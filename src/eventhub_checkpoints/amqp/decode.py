"""Decoder of AMQP values that never reads past the end of a buffer.

Rule 1: whatever the input, the outcome is a value or a `CodecError`.
Rule 2: work and memory are bounded by the input: nesting is at most `MAX_DEPTH` deep, and an
array of elements of zero width has at most `MAX_EMPTY_ELEMENTS` of them.
"""

from __future__ import annotations

import struct

from eventhub_checkpoints.amqp.constructors import (
    MAX_EMPTY_ELEMENTS,
    SCALARS,
    Buffer,
    Read,
    binary,
    check_depth,
    check_end,
    compound,
    put,
    span,
    unknown,
)
from eventhub_checkpoints.amqp.types import Array, CodecError, Described, Symbol, Value


class Decoder:
    """Decoder with a table of readers by constructor.

    Args:
        errors: how to handle strings that are not UTF-8: "strict" raises `CodecError`; any other
            error handler of `str` is used as it is, for instance "replace" for a reader that must
            not lose an event.

    Attributes:
        readers: reader of the value behind each constructor; see `constructors`.
    """

    def __init__(self, errors: str = "strict") -> None:
        self._errors = errors
        self.readers: list[Read] = [unknown(code) for code in range(256)]
        for code, read in SCALARS.items():
            self.readers[code] = read
        table = self.readers
        table[0x00] = self._described
        for code, head in ((0xA0, 1), (0xB0, 4)):
            table[code] = binary(head)
            table[code + 1] = self._text(head, str, "utf-8")
            table[code + 3] = self._text(head, Symbol, "ascii")
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
            raise CodecError(f"cannot read an AMQP value at offset {offset}")
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
        check_depth(depth)
        descriptor, at = self._value(buffer, at, depth + 1)
        value, at = self._value(buffer, at, depth + 1)
        return self._describe(descriptor, value), at

    def _describe(self, descriptor: Value, value: Value) -> Value:
        return Described(descriptor, value)

    def _text(self, width: int, kind: type[str], encoding: str) -> Read:
        errors = self._errors

        def read(buffer: Buffer, at: int, depth: int) -> tuple[str, int]:
            start, end = span(buffer, at, width)
            text = str(buffer[start:end], encoding, errors)
            return (text if kind is str else kind(text)), end

        return read

    def _list(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[list[Value], int]:
            count, at, end = compound(buffer, at, width, depth)
            if count > end - at:
                raise CodecError(f"a list of {count} items cannot fit into {end - at} bytes")
            items = []
            for _ in range(count):
                item, at = self._value(buffer, at, depth + 1)
                items.append(item)
            check_end(at, end)
            return items, end

        return read

    def _map(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[dict[Value, Value], int]:
            count, at, end = compound(buffer, at, width, depth)
            if count > end - at or count % 2:
                raise CodecError(f"a map of {count} items in {end - at} bytes is impossible")
            pairs: dict[Value, Value] = {}
            for _ in range(count // 2):
                key, at = self._value(buffer, at, depth + 1)
                value, at = self._value(buffer, at, depth + 1)
                put(pairs, key, value)
            check_end(at, end)
            return pairs, end

        return read

    def _array(self, width: int) -> Read:
        def read(buffer: Buffer, at: int, depth: int) -> tuple[Array, int]:
            count, at, end = compound(buffer, at, width, depth)
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
            check_end(at, end)
            return items, end

        return read

    def _element(self, buffer: Buffer, at: int, depth: int) -> tuple[Read, int]:
        """Read the single constructor that all elements of an array share."""
        code = buffer[at]
        if code:
            return self.readers[code], at + 1
        check_depth(depth)
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
