"""Position of a value in a layout, and its conversion for many rows at once."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from eventhub_checkpoints.amqp.decode import PLAIN
from eventhub_checkpoints.receive.amqp.decoder.values import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventhub_checkpoints.amqp.types import Value
    from eventhub_checkpoints.receive.amqp.decoder.columns import Text

Groups: TypeAlias = "Sequence[list[bytes]]"
"""Contents of the groups of a layout: one list per group, with one item per row."""

INTEGERS = {
    0x50: "B",
    0x51: "b",
    0x52: "B",
    0x53: "B",
    0x54: "b",
    0x55: "b",
    0x60: "H",
    0x61: "h",
    0x70: "I",
    0x71: "i",
    0x80: "Q",
    0x81: "q",
    0x83: "q",
}
"""Constructors of integers, with their formats for `struct`."""

BINARY = (0xA0, 0xB0)
TEXTS = frozenset({0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3})
"""Constructors of binary, string and symbol values, which may be UTF-8."""

UNREADABLE = frozenset({0x00, 0x73, *range(0xC0, 0x100)})
"""Constructors whose bytes may be invalid: described values, characters, compounds. They are read
when the frame arrives, because an error would be too late when the row is taken.
"""

TRUTHS = (0x41, 0x42)
FALSY = (0x40, 0x42, 0x43, 0x44, 0x45)
"""Constructors of values that are null, zero, false or empty."""

_TRUE_OR_FALSE = {b"\x41": "true", b"\x42": "false"}
_FIXED = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}


@dataclass(frozen=True, slots=True)
class Slot:
    """Position of a value in a layout's groups.

    Attributes:
        code: the value's constructor.
        group: number of the value's group; None where there is only a constructor.
        has_size: whether that group holds the size, and the next one the content.
    """

    code: int
    group: int | None = None
    has_size: bool = False

    def integers(self, groups: Groups, rows: int) -> list[int]:
        """Return the values of all rows of an integer slot."""
        if self.group is None:
            return [0] * rows
        joined = b"".join(groups[self.group])
        return list(struct.unpack(f">{rows}{INTEGERS[self.code]}", joined))

    def nullable(self, groups: Groups, rows: int) -> list[Text | None]:
        """Return the values of all rows as strings, null as None."""
        return [None] * rows if self.code == 0x40 else [*self.texts(groups, rows)]

    def texts(self, groups: Groups, rows: int) -> list[Text]:
        """Return the values of all rows as strings, null as JSON's `null`."""
        if self.group is None:
            return [_as_text(bytes((self.code,)))] * rows
        held = groups[self.group + 1] if self.has_size else groups[self.group]
        if self.code in TEXTS:
            return _utf8(held)
        if self.code in INTEGERS:
            return [*map(str, self.integers(groups, rows))]
        if self.code in TRUTHS:
            return [_TRUE_OR_FALSE[one] for one in held]
        begin = bytes((self.code,))
        return [_as_text(begin + one) for one in held]


NONE = Slot(0x40)


def width_of(code: int) -> int:
    """Return the width in bytes of a constructor's value, or of its size if it `is_sized`."""
    return _FIXED[code >> 4] if code < 0xA0 else 4 if code & 0x10 else 1


def is_sized(code: int) -> bool:
    """Return whether a size follows the constructor."""
    return code >= 0xA0


def _as_text(raw: bytes) -> str:
    value: Value = PLAIN.decode(raw)[0]
    text = as_text(value)
    return "null" if text is None else text


def _utf8(held: list[bytes]) -> list[Text]:
    # A zero byte is never part of another character: as separator it keeps values apart.
    joined = b"\x00".join(held)
    if not joined.isascii():
        try:
            joined.decode()
        except UnicodeDecodeError:
            return [as_text(one) or "" for one in held]
    return list(held)
