"""Builder of a bytes regular expression for frames of known structure.

Here the template becomes a regular expression. It cannot count, so the content of a sized value
ends at the first occurrence of the literal that follows it in the template. The sizes are verified
afterwards, by comparison with the lengths of the contents.

Every repetition is possessive: only the first occurrence is tried, so time is linear in the input,
whatever a producer writes into its events. Possessive repetitions are also the fast ones: for
others `re` pushes a context to backtrack to, but not for these, nor for a row of dots.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class Pattern:
    """Sequence of pieces; adding a piece that has a group returns the group's number.

    Attributes:
        groups: number of the next group.
        sizes: numbers of the groups that hold sizes, each with its width in bytes.
    """

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self.groups = 0
        self.sizes: list[tuple[int, int]] = []

    def literal(self, raw: bytes) -> None:
        """Add bytes that are the same in all frames."""
        if self._pieces and isinstance(self._pieces[-1], _Literal):
            raw = self._pieces.pop().raw + raw
        self._pieces.append(_Literal(raw))

    def skip(self, size: int) -> None:
        """Add `size` bytes whose content is ignored."""
        self._pieces.append(_Regex(_any(size)))

    def fixed(self, size: int) -> int:
        """Add a group of `size` bytes."""
        return self.one_of(_any(size))

    def one_of(self, regex: bytes) -> int:
        """Add a group for a regex of fixed length."""
        self._pieces.append(_Regex(b"(%b)" % regex))
        self.groups += 1
        return self.groups - 1

    def sized(self, width: int, least: int = 0) -> int:
        """Add a group for a size of `width` bytes, and another for the content of that size."""
        number = self._size(width)
        self._pieces.append(_Content(b"." * least))
        self.groups += 1
        return number

    def last(self, codes: Collection[int]) -> int:
        """Add a group for a binary value's constructor and size, and another for the remainder.

        Sizes with and without a constructor must not be confused: these have width 0 in `sizes`.
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
        """Return the regex, to be compiled with `re.DOTALL`."""
        following = [*self._pieces[1:], _Literal(b"")]
        return b"".join(map(_spelled, self._pieces, following))


class _Regex:
    """Piece that is a regex already."""

    def __init__(self, spelled: bytes) -> None:
        self.raw = spelled


class _Literal:
    """Piece of literal bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class _Content:
    """Piece that extends to the next literal."""

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
    # Up to the first byte of the literal; further where the rest of the literal does not follow.
    stop, rest = re.escape(stop), re.escape(rest)
    return b"(%b%b(?:%b(?!%b)%b)*+)" % (piece.raw, others, stop, rest, others)


def _any(size: int) -> bytes:
    return b"." * size if size <= 16 else b".{%d}+" % size
