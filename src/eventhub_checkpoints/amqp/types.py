"""Say a value's exact AMQP type where Python's own type leaves it open.

Plain Python values stand for one AMQP type each: None is null, bool boolean, int long, float
double, str string, bytes binary, list list, dict map, `uuid.UUID` uuid, `decimal.Decimal`
decimal128. Every other type has a thin wrapper here. Decoding gives back the same classes, so
what was read can be written again with its type kept.

Source: OASIS AMQP 1.0, part 1, section 1.6 (primitive type definitions).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""Whatever can stand in an AMQP value: the classes of this module and the plain ones above."""


class CodecError(ValueError):
    """Bytes that are not valid AMQP 1.0, or a value that AMQP cannot carry."""


class Symbol(str):
    """An ASCII name from a set of constants, such as a filter or a capability."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class UByte(int):
    """An unsigned integer of 8 bits."""


class UShort(int):
    """An unsigned integer of 16 bits."""


class UInt(int):
    """An unsigned integer of 32 bits."""


class ULong(int):
    """An unsigned integer of 64 bits."""


class Byte(int):
    """A signed integer of 8 bits."""


class Short(int):
    """A signed integer of 16 bits."""


class Int(int):
    """A signed integer of 32 bits."""


class Timestamp(int):
    """A point in time.

    Units: milliseconds since the epoch, UTC.
    """


class Float(float):
    """A floating point number of 32 bits."""

    __slots__ = ()


class Decimal32(Decimal):
    """A decimal number of at most 7 digits."""


class Decimal64(Decimal):
    """A decimal number of at most 16 digits."""


class Array(list[Any]):
    """Values of one AMQP type behind a single constructor; a plain list may mix types."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor that says what it means."""

    descriptor: Value
    value: Value
