"""Regular expression of a frame template.

A regular expression cannot count, so the content of a sized value ends at the first occurrence of
the literal that follows it in the template. The sizes are verified afterwards, by comparison with
the lengths of the contents.

Every repetition is possessive: only the first occurrence is tried, so time is linear in the input,
whatever a producer writes into its events. Possessive repetitions are also the fast ones: for
others `re` pushes a context to backtrack to, but not for these, nor for a row of dots.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


class _Piece(NamedTuple):
    """Piece of a pattern: literal bytes, a regex, or content that extends to the next literal."""

    raw: bytes
    is_literal: bool = False
    is_content: bool = False


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
        if self._pieces and self._pieces[-1].is_literal:
            raw = self._pieces.pop().raw + raw
        self._pieces.append(_Piece(raw, is_literal=True))

    def skip(self, size: int) -> None:
        """Add `size` bytes whose content is ignored."""
        self._pieces.append(_Piece(_any(size)))

    def fixed(self, size: int) -> int:
        """Add a group of `size` bytes."""
        return self.one_of(_any(size))

    def one_of(self, regex: bytes) -> int:
        """Add a group for a regex of fixed length."""
        return self._group(_Piece(b"(%b)" % regex))

    def sized(self, width: int, least: int = 0) -> int:
        """Add a group for a size of `width` bytes, and another for the content of that size."""
        self.sizes.append((self.groups, width))
        number = self.fixed(width)
        self._group(_Piece(b"." * least, is_content=True))
        return number

    def last(self, codes: Collection[int]) -> int:
        """Add a group for a binary value's constructor and size, and another for the remainder.

        Sizes with and without a constructor must not be confused: these have width 0 in `sizes`.
        """
        self.sizes.append((self.groups, 0))
        heads = [re.escape(bytes((code,))) + b"." * (4 if code & 0x10 else 1) for code in codes]
        number = self.one_of(b"|".join(heads))
        self.one_of(b".*+")
        return number

    def regex(self) -> bytes:
        """Return the regex, to be compiled with `re.DOTALL`."""
        following = [*self._pieces[1:], _Piece(b"")]
        return b"".join(map(_regex, self._pieces, following))

    def _group(self, piece: _Piece) -> int:
        self._pieces.append(piece)
        self.groups += 1
        return self.groups - 1


def _regex(piece: _Piece, following: _Piece) -> bytes:
    if not piece.is_content:
        return re.escape(piece.raw) if piece.is_literal else piece.raw
    stop, rest = following.raw[:1], following.raw[1:]
    others = rb"[^\x%02x]*+" % ord(stop)
    if not rest:
        return b"(%b%b)" % (piece.raw, others)
    # Up to the first byte of the literal; further where the rest of the literal does not follow.
    stop, rest = re.escape(stop), re.escape(rest)
    return b"(%b%b(?:%b(?!%b)%b)*+)" % (piece.raw, others, stop, rest, others)


def _any(size: int) -> bytes:
    return b"." * size if size <= 16 else b".{%d}+" % size
