"""Changes of an input: what coverage alone finds late, such as 5,000 digits or deep nesting."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal, NamedTuple

from hypothesis import strategies as st

NUMBERS = (
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"1.5", b"-1", b"0", b"00", b"1_0"),
    *(b" 1", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809"),
    *(b"18446744073709551616", b"9" * 5000, "\u0664".encode(), "\u00b2".encode()),
)
JSON = (
    *(b"true", b"null", b"{}", b"[]", b'""', b'"\\ud800"', b'"\\u0000"', b'{"bytes":"x"}'),
    *(b"[" * 3000, b'{"a":' * 3000, b"<a>" * 3000, b"(" * 100, b"\xc0\x01" * 100, b"A" * 5000),
)
TIMES = (
    *(b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59.999999-23:59", b"2026-11-24"),
    *(b"2026-11-24T10:00:00", b"2026-11-24T10:00:00Z", b"10:00"),
    *(b"Mon, 32 Nov 2026 10:00:00 GMT", b"Mon, 1 Jan 1 00:00:00 +2359"),
)
SIGNS = (
    *(b"%", b"%00", b"%2F", b"%ff", b"[::1]", b"[", b"]", b":99999", b":-1", b"@", b"#", b"?"),
    *(b"//", b"\n", b"\r\n", b"\t", b",", b";", b"=", b'"', b"\\", b"'", b":", b"/", b"{", b"}"),
    *(b"<", b"&x;", "\ufeff".encode(), "\u2028".encode(), b"\xff", b"\x00"),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80", b"\x80\x00\x00\x00\x00\x00\x00\x00"),
)
TOKENS = (*NUMBERS, *JSON, *TIMES, *SIGNS)
Kind = Literal["insert", "replace", "delete", "repeat", "value"]
KINDS: tuple[Kind, ...] = ("insert", "replace", "delete", "repeat", "value")
MOST_EDITS = 4
DELIMITERS = b'{}[],:;=&?/"\n<> |'


class Edit(NamedTuple):
    """A change of an input.

    Attributes:
        at: where, in thousandths of the input.
        token: index in `TOKENS`, or, where it is higher, a single byte.
        length: how many bytes are deleted, repeated or replaced.
    """

    kind: Kind
    at: int
    token: int
    length: int


def edited(data: bytes, edits: Iterable[Edit], longest: int) -> bytes:
    """Return an input after some changes, cut to the longest."""
    for kind, at, token, length in edits:
        begin = len(data) * at // 1000
        new = TOKENS[token] if token < len(TOKENS) else bytes([token % 256])
        end = begin + length
        if kind == "value":  # all between two delimiters, such as a number in JSON
            begin, end = field_at(data, begin)
        if kind == "insert":
            end = begin
        elif kind == "delete":
            new = b""
        elif kind == "repeat":
            new = data[begin:end] * (2 + token)
        data = (data[:begin] + new + data[end:])[:longest]
    return data


def field_at(data: bytes, at: int) -> tuple[int, int]:
    """Return begin and end of what lies between two delimiters."""
    begin = end = at
    while begin and data[begin - 1] not in DELIMITERS:
        begin -= 1
    while end < len(data) and data[end] not in DELIMITERS:
        end += 1
    return begin, end


def mutated(data: bytes, chance: Random, longest: int) -> bytes:
    """Return an input after random changes."""
    edits = [
        Edit(
            chance.choice(KINDS),
            chance.randrange(1000),
            chance.randrange(len(TOKENS) + 256),
            chance.choice((1, 1, 2, 4, 8, 40)),
        )
        for _ in range(chance.randint(1, MOST_EDITS))
    ]
    return edited(data, edits, longest)


def inputs(corpus: Sequence[bytes], longest: int) -> st.SearchStrategy[bytes]:
    """Return a strategy of inputs near those of a corpus."""
    edits = st.lists(
        st.builds(
            Edit,
            st.sampled_from(KINDS),
            st.integers(0, 999),
            st.integers(0, len(TOKENS) + 255),
            st.sampled_from((1, 2, 4, 8, 40)),
        ),
        max_size=MOST_EDITS,
    )
    return st.builds(edited, st.sampled_from(corpus), edits, st.just(longest))
