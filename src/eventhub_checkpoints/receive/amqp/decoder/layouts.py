"""Layouts: the template of one kind of frame, compiled, with the matched rows not taken yet.

A frame of a layout costs one match. The contents of its groups go to one flat list, which gives
the garbage collector nothing to do, and are converted to columns for all rows at once. A half
layout matches the head alone, and the tail of each frame is decoded.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, TypeAlias

from eventhub_checkpoints.receive.amqp.decoder.tails import read_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from eventhub_checkpoints.receive.amqp.decoder.shapes import Shape
    from eventhub_checkpoints.receive.amqp.decoder.slots import Groups
    from eventhub_checkpoints.receive.amqp.decoder.tails import Tail

Match: TypeAlias = "Callable[[bytes, int, int], re.Match[bytes] | None]"

_size32 = struct.Struct(">I").pack
_SMALL_BINARY = [bytes((0xA0, size)) for size in range(256)]


def _small_sizes(lengths: Iterable[int]) -> bytes:
    try:
        return bytes(lengths)
    except ValueError:
        return b""


def _wide_sizes(lengths: Iterable[int]) -> bytes:
    return b"".join(map(_size32, lengths))


def _binary_heads(lengths: Iterable[int]) -> bytes:
    return b"".join(
        [_SMALL_BINARY[size] if size < 256 else b"\xb0" + _size32(size) for size in lengths]
    )


_EXPECTED = {0: _binary_heads, 1: _small_sizes, 4: _wide_sizes}
"""Encoders of lengths by width of the size in bytes; 0 is a binary value with its constructor.

Sizes that are encoded otherwise, such as 7 in four bytes, are checked one by one.
"""


class Held:
    """Frames that share a template, and the contents of their groups.

    Attributes:
        shape: positions of the values in the template.
        regex: regular expression for the frame, or for its head.
        match: the compiled match function.
        sizes: groups that hold the size of the next group, each with its width in bytes.
        width: number of groups in a row; the last one is the body.
        held: contents of the groups of all rows, row by row.
        checked: number of rows whose sizes were verified.
        hits: rows since the last epoch of `learning`.
    """

    def __init__(
        self, shape: Shape, regex: bytes, sizes: Sequence[tuple[int, int]], width: int
    ) -> None:
        self.shape, self.regex, self.sizes = shape, regex, sizes
        self.match: Match = re.compile(regex, re.DOTALL).match
        self.width, self.body = width, width - 1
        self.held: list[bytes] = []
        self.checked = self.hits = 0

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return len(self.held) // self.width

    def column(self, group: int, begin: int = 0) -> list[bytes]:
        """Return the contents of a group in the rows from `begin` on."""
        return self.held[begin * self.width + group :: self.width]

    def misread(self) -> list[int]:
        """Verify sizes in the unchecked rows; return the rows where one is wrong.

        The regular expression ends a value at the first bytes that look like its end, which may
        lie inside the value. Such a row goes to the generic decoder.
        """
        wrong: set[int] = set()
        held, every = self.held[self.checked * self.width :], self.width
        for group, width in self.sizes:
            sizes, contents = held[group::every], held[group + 1 :: every]
            if b"".join(sizes) != _EXPECTED[width](map(len, contents)):
                wrong.update(self._differing(sizes, contents, 0 if width else 1))
        return sorted(wrong)

    def _differing(self, sizes: list[bytes], contents: list[bytes], skipped: int) -> Iterator[int]:
        for row, (size, content) in enumerate(zip(sizes, contents, strict=True), self.checked):
            if int.from_bytes(size[skipped:], "big") != len(content):
                yield row

    def check(self) -> int:
        """Mark all rows as checked; return the size in bytes of the newly checked bodies."""
        size = sum(map(len, self.column(self.body, self.checked)))
        self.hits += self.rows - self.checked
        self.checked = self.rows
        return size

    def delivery_ids(self, begin: int) -> list[int]:
        """Return the delivery ids of the rows from `begin` on."""
        slot = self.shape.delivery_id
        if slot.group is None:
            return [0] * (self.rows - begin)
        return [int.from_bytes(one, "big") for one in self.column(slot.group, begin)]

    def cut(self, rows: int) -> Groups:
        """Remove the first rows; return the contents of each group in them."""
        width = self.width
        first, self.held = self.held[: rows * width], self.held[rows * width :]
        self.checked -= rows
        return [first[group::width] for group in range(width)]

    def drop(self, begin: int, end: int) -> None:
        """Drop unchecked rows."""
        del self.held[begin * self.width : end * self.width]


class Layout(Held):
    """Layout of whole frames."""

    def __init__(self, shape: Shape, regex: bytes) -> None:
        super().__init__(shape, regex, shape.head.sizes + shape.tail.sizes, shape.tail.groups)


class HalfLayout(Held):
    """Layout of the heads of frames; each tail is decoded separately.

    Attributes:
        tails: decoded tails of all rows.
    """

    def __init__(self, shape: Shape, regex: bytes) -> None:
        super().__init__(shape, regex, shape.head.sizes, shape.head.groups + 1)
        self.tails: list[Tail] = []

    def add(self, head: re.Match[bytes], data: bytes, end: int) -> bool:
        """Add a row; return False, adding none, if the bytes behind the head are no tail."""
        tail = read_tail(data, head.end(), end)
        if tail is None:
            return False
        self.held += head.groups()
        self.held.append(tail.body)
        self.tails.append(tail)
        return True

    def cut_tails(self, rows: int) -> list[Tail]:
        """Remove the tails of the first rows and return them."""
        first, self.tails = self.tails[:rows], self.tails[rows:]
        return first

    def drop(self, begin: int, end: int) -> None:
        super().drop(begin, end)
        del self.tails[begin:end]


def unsettled_ids(layouts: Iterable[Held]) -> list[int]:
    """Return the ids of unsettled deliveries in unchecked rows."""
    ids: list[int] = []
    for layout in layouts:
        if not layout.shape.settled:
            ids += layout.delivery_ids(layout.checked)
    return sorted(ids)
