"""Every constructor of AMQP 1.0, spelled by hand from the specification."""

import uuid
from decimal import Decimal

import pytest

from eventhub_checkpoints.amqp.decode import Decoder, decode, skip
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

SAMPLE = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

CONSTRUCTORS = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("56 01", True),
    ("56 00", False),
    ("50 ff", UByte(255)),
    ("60 ffff", UShort(65535)),
    ("70 ffffffff", UInt(2**32 - 1)),
    ("52 ff", UInt(255)),
    ("43", UInt(0)),
    ("80 ffffffffffffffff", ULong(2**64 - 1)),
    ("53 ff", ULong(255)),
    ("44", ULong(0)),
    ("51 80", Byte(-128)),
    ("61 8000", Short(-32768)),
    ("71 80000000", Int(-(2**31))),
    ("54 80", Int(-128)),
    ("81 8000000000000000", -(2**63)),
    ("55 80", -128),
    ("72 3fc00000", Float(1.5)),
    ("82 3ff8000000000000", 1.5),
    ("74 32800001", Decimal32("1")),
    ("84 31c0000000000001", Decimal64("1")),
    ("94 30400000000000000000000000000001", Decimal("1")),
    ("73 0001f600", Char("\U0001f600")),
    ("83 ffffffffffffffff", Timestamp(-1)),
    ("98 00112233445566778899aabbccddeeff", SAMPLE),
    ("a0 02 00ff", b"\x00\xff"),
    ("b0 00000002 00ff", b"\x00\xff"),
    ("a1 02 c3a9", "é"),
    ("b1 00000002 c3a9", "é"),
    ("a3 01 61", Symbol("a")),
    ("b3 00000001 61", Symbol("a")),
    ("45", []),
    ("c0 03 02 41 40", [True, None]),
    ("d0 00000006 00000002 41 40", [True, None]),
    ("c1 06 02 a101 61 55 05", {"a": 5}),
    ("d1 00000009 00000002 a10161 55 05", {"a": 5}),
    ("e0 04 02 50 01 02", Array([UByte(1), UByte(2)])),
    ("f0 00000007 00000002 50 01 02", Array([UByte(1), UByte(2)])),
    ("e0 02 00 40", Array()),
    ("e0 01 00", Array()),
    ("e0 02 03 43", Array([UInt(0)] * 3)),
    ("00 53 24 45", Described(ULong(36), [])),
    ("00 a3 01 78 a1 01 79", Described(Symbol("x"), "y")),
    ("e0 07 02 00 53 09 50 01 02", Array([Described(ULong(9), UByte(n)) for n in (1, 2)])),
    ("e0 08 02 c0 02 01 41 02 01 42", Array([[True], [False]])),
]


# An item is a constructor; what follows is shown of all of them together.
@pytest.mark.parametrize(("spelled", "value"), CONSTRUCTORS, ids=[c[0] for c in CONSTRUCTORS])
def test_a_constructor_gives_its_value_and_type(spelled, value):
    raw = bytes.fromhex(spelled)
    assert decode(raw) == (value, len(raw))
    assert type(decode(raw)[0]) is type(value)


def test_a_value_is_read_at_an_offset_of_a_view():
    for spelled, value in CONSTRUCTORS:
        raw = bytes.fromhex(spelled)
        assert decode(memoryview(b"??" + raw + b"!"), 2) == (value, 2 + len(raw)), spelled


def test_a_value_that_is_cut_off_anywhere_raises_the_codecs_error():
    for raw in (bytes.fromhex(spelled) for spelled, _ in CONSTRUCTORS):
        for length in range(len(raw)):
            with pytest.raises(CodecError):
                decode(raw[:length])
            with pytest.raises(CodecError):
                skip(raw[:length])


def test_skipping_a_value_ends_where_reading_it_ends():
    ends = {spelled: skip(bytes.fromhex(spelled) + b"more") for spelled, _ in CONSTRUCTORS}
    assert ends == {spelled: len(bytes.fromhex(spelled)) for spelled, _ in CONSTRUCTORS}


def test_every_other_byte_is_refused():
    known = {bytes.fromhex(spelled)[0] for spelled, _ in CONSTRUCTORS}
    for code in set(range(256)) - known:
        with pytest.raises(CodecError, match=f"0x{code:02x}"):
            decode(bytes((code,)) + bytes(64))


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ("56 02", "not an AMQP boolean"),
        ("73 00110000", "not a Unicode character"),
        ("73 0000d800", "not a Unicode character"),
        ("a1 01 ff", "invalid"),
        ("a3 01 ff", "invalid"),
        ("c0 00", "no room"),
        ("c0 01 05", "cannot fit"),
        ("c0 03 01 41 41", "ends at"),
        ("c0 02 01 55 00", "ends at"),
        ("c1 02 01 41", "cannot fit"),
        ("c1 03 02 45 41", "map key"),
        ("d0 00000004 ffffffff", "cannot fit"),
        ("e0 03 05 50 01", "cut off"),
        ("f0 00000005 ffffffff 43", "cannot fit"),
        ("94 30", "cut off"),
    ],
)
def test_what_is_impossible_is_refused(spelled, reason):
    with pytest.raises(CodecError, match=reason):
        decode(bytes.fromhex(spelled))


def test_nesting_has_a_limit():
    deep = b"\x45"
    for _ in range(100):
        deep = b"\xd0" + (len(deep) + 4).to_bytes(4, "big") + b"\x00\x00\x00\x01" + deep
    with pytest.raises(CodecError, match="nested"):
        decode(deep)
    for endless in (b"\x00" * 5000, b"\xe0\xff\x01\x00" + b"\x00" * 5000):
        with pytest.raises(CodecError, match="nested"):
            decode(endless)


def test_an_offset_outside_the_bytes_is_refused():
    for offset in (-1, 1, 10):
        with pytest.raises(CodecError):
            decode(b"\x40", offset)


def test_a_lenient_decoder_reads_text_that_is_not_utf_8():
    assert Decoder("replace").decode(b"\xa1\x02a\xff") == ("a\ufffd", 4)
