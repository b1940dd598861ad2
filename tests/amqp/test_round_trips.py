"""Every type, written and read again, with values of all sizes."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.amqp.decode import decode, skip
from eventhub_checkpoints.amqp.encode import encode
from eventhub_checkpoints.amqp.types import (
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
)
from examples import examples


def integers(kind, bits, *, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high).map(kind)


def decimals(kind, digits, exponent):
    numbers = st.builds(
        lambda sign, n, e: kind(Decimal((sign, tuple(map(int, str(n))), e))),
        st.integers(0, 1),
        st.integers(0, 10**digits - 1),
        st.integers(-exponent, exponent),
    )
    return numbers | st.sampled_from([kind("Infinity"), kind("-Infinity")])


ascii_text = st.text(st.characters(max_codepoint=127), max_size=300)
characters = st.characters(exclude_categories=["Cs"])

SCALARS = {
    "null": st.none(),
    "boolean": st.booleans(),
    "ubyte": integers(UByte, 8, signed=False),
    "ushort": integers(UShort, 16, signed=False),
    "uint": integers(UInt, 32, signed=False),
    "ulong": integers(ULong, 64, signed=False),
    "byte": integers(Byte, 8, signed=True),
    "short": integers(Short, 16, signed=True),
    "int": integers(Int, 32, signed=True),
    "long": integers(int, 64, signed=True),
    "float": st.floats(width=32, allow_nan=False).map(Float),
    "double": st.floats(allow_nan=False),
    "decimal32": decimals(Decimal32, 7, 90),
    "decimal64": decimals(Decimal64, 16, 369),
    "decimal128": decimals(Decimal, 34, 6111),
    "char": characters.map(Char),
    "timestamp": integers(Timestamp, 64, signed=True),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=300),
    "string": st.text(characters, max_size=300),
    "symbol": ascii_text.map(Symbol),
}
scalars = st.one_of(list(SCALARS.values()))
arrays = st.one_of([st.lists(kind, max_size=20).map(Array) for kind in SCALARS.values()])
values = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(characters, max_size=5) | st.integers(0, 9), inner, max_size=5)
        | st.builds(Described, SCALARS["ulong"] | SCALARS["symbol"], inner)
    ),
    max_leaves=20,
)


def exactly(value):
    """Spell a value with its types, so that 1 and UInt(1) differ."""
    if isinstance(value, dict):
        return type(value).__name__, [(exactly(k), exactly(v)) for k, v in value.items()]
    if isinstance(value, list):
        return type(value).__name__, [exactly(item) for item in value]
    if isinstance(value, Described):
        return exactly(value.descriptor), exactly(value.value)
    return type(value).__name__, repr(value)


def check(value):
    raw = encode(value)
    again, end = decode(raw)
    assert end == len(raw) == skip(raw)
    assert exactly(again) == exactly(value)


@pytest.mark.parametrize("kind", SCALARS)
@examples(20)
@given(st.data())
def test_a_scalar_comes_back_with_its_type(kind, data):
    check(data.draw(SCALARS[kind]))


@pytest.mark.parametrize("kind", SCALARS)
@examples(15)
@given(st.data())
def test_an_array_of_one_type_comes_back(kind, data):
    check(data.draw(st.lists(SCALARS[kind], max_size=10).map(Array)))


@examples(100)
@given(values)
def test_a_nested_value_comes_back(value):
    check(value)


@examples(50)
@given(values)
def test_a_nested_value_cut_off_anywhere_raises_the_codecs_error(value):
    raw = encode(value)
    for length in range(0, len(raw), max(1, len(raw) // 200)):
        with pytest.raises(CodecError):
            decode(raw[:length])


@examples(500)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_the_codecs_error(raw):
    try:
        _, end = decode(raw)
    except CodecError:
        return
    assert end <= len(raw)


@examples(100)
@given(values, st.data())
def test_a_damaged_value_gives_a_value_or_the_codecs_error(value, data):
    raw = bytearray(encode(value))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(raw)
    except CodecError:
        return


@pytest.mark.parametrize("size", [0, 255, 256, 70_000])
def test_sizes_around_the_small_and_the_wide_form(size):
    for value in (b"x" * size, "x" * size, Symbol("x" * size), [True] * size):
        check(value)
    check(dict.fromkeys(map(str, range(size // 2))))
    check(Array([UByte(1)] * size))
    check(Array(["x" * size]))


def test_compounds_inside_an_array_come_back():
    check(Array([[1, "a"], []]))
    check(Array([{"a": 1}, {}]))
    check(Array([Array([UByte(1)]), Array([UByte(2), UByte(3)])]))
    check(Array([Described(Symbol("x"), "a"), Described(Symbol("x"), "b")]))


def test_nan_comes_back():
    assert math.isnan(decode(encode(float("nan")))[0])
    assert math.isnan(decode(encode(Float("nan")))[0])
    for kind in (Decimal32, Decimal64, Decimal):
        for name in ("NaN", "sNaN", "-NaN"):
            assert repr(decode(encode(kind(name)))[0]) == repr(kind(name))


class Unknown:
    """Of no type of AMQP; its text is the same in every process, as the name of a test must be."""

    def __repr__(self) -> str:
        return "unknown"


NOTHING_KNOWN = Unknown()


@pytest.mark.parametrize(
    "value",
    [
        NOTHING_KNOWN,
        {1},
        2**63,
        UInt(-1),
        UByte(256),
        Symbol("é"),
        "\ud800",
        Char("ab"),
        Char(""),
        Decimal32("12345678"),
        Decimal64("1E+400"),
        Decimal("1E-7000"),
        Array([1, "a"]),
        Array([NOTHING_KNOWN]),
        Array([Described(Symbol("x"), 1), Described(Symbol("y"), 1)]),
        [[NOTHING_KNOWN]],
    ],
    ids=repr,
)
def test_what_amqp_cannot_carry_is_refused(value):
    with pytest.raises(CodecError):
        encode(value)


def test_a_list_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(CodecError, match="nested"):
        encode(endless)


def test_classes_derived_from_plain_ones_are_written_as_those():
    class Special(dict):
        pass

    assert encode(Special(a=1)) == encode({"a": 1})
    assert encode((1, 2)) == encode([1, 2])
    assert encode(bytearray(b"a")) == encode(memoryview(b"a")) == encode(b"a")
