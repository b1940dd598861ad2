"""A bytes regex that is put together piece by piece, for bytes whose structure is known.

A regex cannot count, so the content of a sized value is whatever comes before the literal that
followed it where the structure was learned. Whoever uses the groups compares the contents' lengths
with their sizes.

Every repetition is possessive: the first such literal counts and no other is tried, so time grows
with the input only, whatever an event's producer puts into it. It is also what is fast: `re` pushes
a context for a repetition that it may come back to, but none for these, nor for a row of dots.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class Pattern:
    """Collects pieces; every piece that has a group returns its number.

    Attributes:
        groups: number of the next group.
        sizes: numbers of the groups that hold sizes, and how many bytes these have.
    """

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self.groups = 0
        self.sizes: list[tuple[int, int]] = []

    def literal(self, raw: bytes) -> None:
        """Bytes that are always the same."""
        if self._pieces and isinstance(self._pieces[-1], _Literal):
            raw = self._pieces.pop().raw + raw
        self._pieces.append(_Literal(raw))

    def skip(self, size: int) -> None:
        """So many bytes that tell nothing."""
        self._pieces.append(_Regex(_any(size)))

    def fixed(self, size: int) -> int:
        """A group of so many bytes."""
        return self.one_of(_any(size))

    def one_of(self, regex: bytes) -> int:
        """A group that a regex of a fixed length describes."""
        self._pieces.append(_Regex(b"(%b)" % regex))
        self.groups += 1
        return self.groups - 1

    def sized(self, width: int, least: int = 0) -> int:
        """A group for a size of `width` bytes, and the next one for what has this size."""
        number = self._size(width)
        self._pieces.append(_Content(b"." * least))
        self.groups += 1
        return number

    def last(self, codes: Collection[int]) -> int:
        """A group for a binary value's constructor and size, and one for all that is left.

        Sizes with and without the constructor must not be mixed up: these are `sizes` of width 0.
        """
        heads = b"|".join(
            re.escape(bytes((one,))) + b"." * (4 if one & 0x10 else 1) for one in codes
        )
        self.sizes.append((self.groups, 0))
        number = self.one_of(heads)
        self.one_of(b".*+")
        return number

    def _size(self, width: int) -> int:
        self.sizes.append((self.groups, width))
        return self.fixed(width)

    def regex(self) -> bytes:
        """The regex; it wants `re.DOTALL`."""
        following = [*self._pieces[1:], _Literal(b"")]
        return b"".join(map(_spelled, self._pieces, following))


class _Regex:
    """A piece that is spelled already."""

    def __init__(self, spelled: bytes) -> None:
        self.raw = spelled


class _Literal:
    """Bytes as they are."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class _Content:
    """Something up to the literal behind it."""

    def __init__(self, first: bytes) -> None:
        self.raw = first


_Piece = _Regex | _Literal | _Content


def _spelled(piece: _Piece, following: _Piece) -> bytes:
    if isinstance(piece, _Literal):
        return re.escape(piece.raw)
    if isinstance(piece, _Regex):
        return piece.raw
    stop, rest = following.raw[:1], following.raw[1:]
    others = rb"[^\x%02x]*+" % ord(stop)
    if not rest:
        return b"(%b%b)" % (piece.raw, others)
    # Up to the byte with which the literal starts, and on where the literal does not follow.
    stop, rest = re.escape(stop), re.escape(rest)
    return b"(%b%b(?:%b(?!%b)%b)*+)" % (piece.raw, others, stop, rest, others)


def _any(size: int) -> bytes:
    return b"." * size if size <= 16 else b".{%d}+" % size
