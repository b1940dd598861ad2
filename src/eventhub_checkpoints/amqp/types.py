"""AMQP types without a Python equivalent, including decimals."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, Overflow, Underflow
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Format:
    """Layout of one width of decimal."""

    octets: int
    digits: int
    bias: int
    coefficient_bits: int

    @property
    def exponent_mask(self) -> int:
        """Bit mask of the biased exponent."""
        return (1 << (self.octets * 8 - 1 - self.coefficient_bits)) - 1

    @property
    def context(self) -> Context:
        """Arithmetic context that raises where a number does not fit exactly."""
        smallest = self.digits - self.bias - 1
        return Context(
            prec=self.digits,
            Emin=smallest,
            Emax=1 - smallest,
            clamp=1,
            traps=[Inexact, Overflow, Underflow],
        )


DECIMAL32 = Format(octets=4, digits=7, bias=101, coefficient_bits=23)
DECIMAL64 = Format(octets=8, digits=16, bias=398, coefficient_bits=53)
DECIMAL128 = Format(octets=16, digits=34, bias=6176, coefficient_bits=113)

# The five bits after the sign that mark infinity and NaN.
_INFINITY, _NAN = 0b11110, 0b11111


def encode_decimal(value: Decimal, form: Format) -> bytes:
    """Encode a decimal in the given width.

    Raises:
        CodecError: the number has more digits, or a larger exponent, than the width holds.
    """
    bits = form.octets * 8
    if not value.is_finite():
        special = (_NAN if value.is_nan() else _INFINITY) << 1 | value.is_snan()
        return (value.is_signed() << bits - 1 | special << bits - 7).to_bytes(form.octets, "big")
    try:
        fitted = form.context.create_decimal(value)
    except (Inexact, Overflow, Underflow) as error:
        raise CodecError(
            f"cannot write {value} as a decimal of {bits} bits: it holds {form.digits} digits"
        ) from error
    return _encode_finite(fitted, form).to_bytes(form.octets, "big")


def _encode_finite(value: Decimal, form: Format) -> int:
    sign, digits, exponent = value.as_tuple()
    coefficient = int("".join(map(str, digits)))
    biased = int(exponent) + form.bias
    top = sign << form.octets * 8 - 1
    if coefficient < 1 << form.coefficient_bits:
        return top | biased << form.coefficient_bits | coefficient
    # A coefficient with the next bit set starts with 100; those three bits are omitted.
    low = coefficient & (1 << form.coefficient_bits - 2) - 1
    return top | 0b11 << form.octets * 8 - 3 | biased << form.coefficient_bits - 2 | low


def decode_decimal(raw: bytes, form: Format) -> Decimal:
    """Decode a decimal; a coefficient above the width's digits is zero, as IEEE 754 says."""
    bits = form.octets * 8
    number = int.from_bytes(raw, "big")
    sign = number >> bits - 1
    lead = number >> bits - 6 & 0b11111
    if lead >= _INFINITY:
        signalling = number >> bits - 7 & 1
        name = "Infinity" if lead == _INFINITY else "sNaN" if signalling else "NaN"
        return Decimal(f"-{name}" if sign else name)
    shift = form.coefficient_bits
    coefficient = number & (1 << shift) - 1
    if lead >> 3 == 0b11:
        shift -= 2
        coefficient = 0b100 << shift | number & (1 << shift) - 1
    exponent = (number >> shift & form.exponent_mask) - form.bias
    if coefficient >= 10**form.digits:
        coefficient = 0
    return Decimal((sign, tuple(map(int, str(coefficient))), exponent))


Value: TypeAlias = Any
"""Any AMQP value: of a class of this module, or of a Python class with the same meaning."""


class CodecError(ValueError):
    """The bytes are not valid AMQP 1.0, or AMQP cannot represent the value."""


class Symbol(str):
    """ASCII name from a set of constants, such as a filter or a capability."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class UByte(int):
    """Unsigned integer of 8 bits."""


class UShort(int):
    """Unsigned integer of 16 bits."""


class UInt(int):
    """Unsigned integer of 32 bits."""


class ULong(int):
    """Unsigned integer of 64 bits."""


class Byte(int):
    """Signed integer of 8 bits."""


class Short(int):
    """Signed integer of 16 bits."""


class Int(int):
    """Signed integer of 32 bits."""


class Timestamp(int):
    """Point in time.

    Units: milliseconds since the epoch, UTC.
    """


class Float(float):
    """Floating point number of 32 bits."""

    __slots__ = ()


class Decimal32(Decimal):
    """Decimal number of at most 7 digits."""


class Decimal64(Decimal):
    """Decimal number of at most 16 digits."""


class Array(list[Any]):
    """Values of one AMQP type after a single constructor; a plain list may mix types."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    """Value with a descriptor that defines its meaning."""

    descriptor: Value
    value: Value
