"""Random events in every encoding that an AMQP peer may use: every type, every constructor.

There are two sources of randomness: `shape` decides on structure and constructors, `content` on
the values. Restarting `shape` from the same seed gives another event of the same template.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.encode import encode, encode_described
from eventhub_checkpoints.amqp.types import Decimal32, Decimal64, Symbol

if TYPE_CHECKING:
    from random import Random

ALPHABET = 'abcXYZ019 @.-_/äßé\u00a1\u00a3中\U0001f600\x00\x01"\\'
FIXED = {
    "B": (0x50, 0x52, 0x53),
    "b": (0x51, 0x54, 0x55),
    "H": (0x60,),
    "h": (0x61,),
    "I": (0x70,),
    "i": (0x71,),
    "q": (0x81, 0x83),
    "Q": (0x80,),
    "f": (0x72,),
    "d": (0x82,),
}
"""Constructors of numbers, by the `struct` format character of the following value."""

CONSTANTS = (0x40, 0x41, 0x42, 0x43, 0x44, 0x45)
TEXTS = (0xA1, 0xA3, 0xB1, 0xB3)
BINARIES = (0xA0, 0xB0)
ARRAYS = ("B", "H", "i", "q", "d")


@dataclass(frozen=True, slots=True)
class Spelling:
    """Encoder of random values.

    Attributes:
        shape: decides on structure.
        content: decides on contents.
        exotic: whether to include what the azure-eventhub client's decoder cannot read.
    """

    shape: Random
    content: Random
    exotic: bool = False

    def text(self, most: int = 20) -> bytes:
        """Return a random UTF-8 string, and rarely bytes that are not valid UTF-8."""
        if self.content.random() < 0.01:
            return self.content.randbytes(self.content.randrange(1, 5))
        size = self.content.randrange(most)
        alphabet = ALPHABET if self.content.random() < 0.3 else ALPHABET[:14]
        return "".join(self.content.choices(alphabet, k=size)).encode()

    def number(self, form: str) -> bytes:
        """Return a number without its constructor."""
        if form in "fd":
            return struct.pack(f">{form}", self.content.choice([0.0, -1.5, 1e10, 0.1, 7.0]))
        return self.content.choice([bytes(8), b"\xff" * 8, self.content.randbytes(8)])[
            : struct.calcsize(f">{form}")
        ]

    def value(self, depth: int = 0) -> bytes:
        """Return any value."""
        kinds = [self._number, self._number, self._text, self._text, self._text, self._constant]
        kinds += [self._binary, self._uuid, self._boolean]
        if depth < 3:
            kinds += [self._list, self._map, self._array, self._described]
        if self.exotic:
            kinds += [self._char, self._decimal]
        return self.shape.choice(kinds)(depth)

    def _constant(self, depth: int) -> bytes:
        return bytes((self.shape.choice(CONSTANTS),))

    def _boolean(self, depth: int) -> bytes:
        return b"\x56" + self.content.choice([b"\x00", b"\x01"])

    def _number(self, depth: int) -> bytes:
        form = self.shape.choice([*FIXED])
        return bytes((self.shape.choice(FIXED[form]),)) + self.number(form)

    def _text(self, depth: int) -> bytes:
        return sized(self.shape.choice(TEXTS), self.text())

    def _binary(self, depth: int) -> bytes:
        return sized(self.shape.choice(BINARIES), self.text())

    def _uuid(self, depth: int) -> bytes:
        return b"\x98" + self.content.randbytes(16)

    def _list(self, depth: int) -> bytes:
        items = [self.value(depth + 1) for _ in range(self.content.randrange(4))]
        return compound(self.shape.choice([0xC0, 0xD0]), len(items), b"".join(items))

    def _map(self, depth: int) -> bytes:
        pairs = [
            sized(0xA1, b"key-%d" % key) + self.value(depth + 1)
            for key in range(self.content.randrange(4))
        ]
        return compound(self.shape.choice([0xC1, 0xD1]), 2 * len(pairs), b"".join(pairs))

    def _array(self, depth: int) -> bytes:
        form, count = self.shape.choice(ARRAYS), self.content.randrange(1, 5)
        code = bytes((self.shape.choice(FIXED[form]),))
        items = b"".join(self.number(form) for _ in range(count))
        return compound(self.shape.choice([0xE0, 0xF0]), count, code + items)

    def _described(self, depth: int) -> bytes:
        descriptor = self.shape.choice([b"\x53\x24", b"\x53\x99", encode(Symbol("a:b"))])
        return b"\x00" + descriptor + self.value(depth + 1)

    def _char(self, depth: int) -> bytes:
        return b"\x73" + self.content.choice("aé中\U0001f600").encode("utf-32-be")

    def _decimal(self, depth: int) -> bytes:
        number = self.content.randrange(10**6)
        return encode(self.shape.choice([Decimal32, Decimal64])(number))

    def pairs(self, keys: list[bytes], code: int) -> bytes:
        """Return a map with these keys."""
        body = b"".join(sized(code, key) + self.value() for key in keys)
        return compound(0xC1 if len(body) < 200 else 0xD1, 2 * len(keys), body)

    def event(self, number: int, largest: int = 400) -> bytes:
        """Return a payload with a sequence number and a body of at most `largest` bytes."""
        parts = []
        if self.shape.random() < 0.05:
            parts.append(encode_described(0x70, compound(0xC0, 2, b"\x41\x50\x04")))
        if self.shape.random() < 0.05:
            parts.append(encode_described(0x71, self.pairs([b"last_offset", b"n"], 0xA3)))
        parts.append(encode_described(0x72, self._annotations(number)))
        if self.shape.random() < 0.4:
            parts.append(encode_described(0x73, self._properties()))
        if self.shape.random() < 0.6:
            keys = self.shape.sample([b"device", b"type", b"unit", "grüße".encode(), b"n"], 3)
            named = keys[: self.shape.randrange(4)]
            parts.append(encode_described(0x74, self.pairs(named, self.shape.choice(TEXTS[:2]))))
        parts += self._body(largest)
        if self.shape.random() < 0.05:
            parts.append(encode_described(0x78, self.pairs([b"f"], 0xA3)))
        return b"".join(parts)

    def _annotations(self, number: int) -> bytes:
        pairs = [
            (b"x-opt-sequence-number", b"\x81" + struct.pack(">q", number)),
            (b"x-opt-offset", sized(0xA1, b"%d" % (number * 312))),
            (b"x-opt-enqueued-time", b"\x83" + struct.pack(">q", 1795255200000 + number)),
        ]
        for key in (b"x-opt-partition-key", b"x-opt-publisher", b"iothub-connection-device-id"):
            if self.shape.random() < 0.2:
                pairs.append((key, self.value() if self.shape.random() < 0.1 else self._text(0)))
        if self.shape.random() < 0.05:
            self.shape.shuffle(pairs)
        body = b"".join(sized(0xA3, key) + value for key, value in pairs)
        return compound(0xC1 if len(body) < 200 else 0xD1, 2 * len(pairs), body)

    def _properties(self) -> bytes:
        fields = []
        for _ in range(self.shape.randrange(14)):
            chance = self.shape.random()
            fields.append(
                b"\x40" if chance < 0.5 else self._text(0) if chance < 0.9 else self.value()
            )
        body = b"".join(fields)
        return compound(0xC0 if len(body) < 200 else 0xD0, len(fields), body)

    def _body(self, largest: int) -> list[bytes]:
        chance = self.shape.random()
        if chance < 0.04:
            return [encode_described(0x77, self.value())]
        if chance < 0.08:
            return [encode_described(0x76, self._list(0)) for _ in range(self.shape.randrange(3))]
        count = 1 if chance < 0.9 else self.shape.randrange(3)
        return [encode_described(0x75, self._data(largest)) for _ in range(count)]

    def _data(self, largest: int) -> bytes:
        body = self.content.randbytes(self.content.randrange(largest + 1))
        return sized(0xA0 if len(body) < 256 and self.content.random() < 0.9 else 0xB0, body)


def sized(code: int, body: bytes) -> bytes:
    """Return a string or binary value, in the wide form if the short one cannot hold it."""
    if code & 0x10 or len(body) > 255:
        return struct.pack(">BI", code | 0x10, len(body)) + body
    return bytes((code, len(body))) + body


def compound(code: int, count: int, body: bytes) -> bytes:
    """Return a list, map or array."""
    if code & 0x10 or len(body) > 254:
        return struct.pack(">BII", code | 0x10, len(body) + 4, count) + body
    return bytes((code, len(body) + 1, count)) + body
