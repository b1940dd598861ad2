"""One layout of frames, and the rows of it that wait to be read.

Frames of a layout cost a match and no more; what their groups hold is kept in one flat list, so
that nothing is left to the garbage collector, and made into columns for all rows at once. Of a half
layout only the head is matched, and each tail read.
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
"""How lengths are spelled as sizes of so many bytes; 0 is a binary value's, with its constructor.

What is spelled otherwise, such as 7 in four bytes, is looked at one by one.
"""


class Held:
    """Frames that have something in common, and what their rows hold.

    Attributes:
        shape: where values lie.
        regex: of a frame, or of its head.
        match: finds one.
        sizes: which groups hold the size of the next one.
        width: how many groups a row has; the last one is its body.
        held: what the groups of all rows hold, row by row.
        checked: how many rows were compared with their sizes.
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
        """How many rows are held."""
        return len(self.held) // self.width

    def column(self, group: int, begin: int = 0) -> list[bytes]:
        """What a group holds in the rows from `begin` on."""
        return self.held[begin * self.width + group :: self.width]

    def misread(self) -> list[int]:
        """Compare sizes in the rows that were not checked yet; give those where one is wrong.

        What looks like the end of a value need not be it.
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
        """Take all rows for checked; give the bytes of the bodies that had not been."""
        size = sum(map(len, self.column(self.body, self.checked)))
        self.hits += self.rows - self.checked
        self.checked = self.rows
        return size

    def delivery_ids(self, begin: int) -> list[int]:
        """The ids of the deliveries of the rows from `begin` on."""
        slot = self.shape.delivery_id
        if slot.group is None:
            return [0] * (self.rows - begin)
        return [int.from_bytes(one, "big") for one in self.column(slot.group, begin)]

    def cut(self, rows: int) -> Groups:
        """Take the first rows off; give what each group holds."""
        width = self.width
        first, self.held = self.held[: rows * width], self.held[rows * width :]
        self.checked -= rows
        return [first[group::width] for group in range(width)]

    def drop(self, begin: int, end: int) -> None:
        """Drop rows that are not checked."""
        del self.held[begin * self.width : end * self.width]


class Layout(Held):
    """A layout of whole frames."""

    def __init__(self, shape: Shape, regex: bytes) -> None:
        super().__init__(shape, regex, shape.head.sizes + shape.tail.sizes, shape.tail.groups)


class HalfLayout(Held):
    """What is known of frames by their head alone.

    Attributes:
        tails: of all rows.
    """

    def __init__(self, shape: Shape, regex: bytes) -> None:
        super().__init__(shape, regex, shape.head.sizes, shape.head.groups + 1)
        self.tails: list[Tail] = []

    def add(self, head: re.Match[bytes], data: bytes, end: int) -> bool:
        """Hold one row more, unless what is behind its head is no tail."""
        tail = read_tail(data, head.end(), end)
        if tail is None:
            return False
        self.held += head.groups()
        self.held.append(tail.body)
        self.tails.append(tail)
        return True

    def cut_tails(self, rows: int) -> list[Tail]:
        """Take the tails of the first rows off."""
        first, self.tails = self.tails[:rows], self.tails[rows:]
        return first

    def drop(self, begin: int, end: int) -> None:
        super().drop(begin, end)
        del self.tails[begin:end]


def unsettled_ids(layouts: Iterable[Held]) -> list[int]:
    """The ids of deliveries in unchecked rows that the peer did not settle."""
    ids: list[int] = []
    for layout in layouts:
        if not layout.shape.settled:
            ids += layout.delivery_ids(layout.checked)
    return sorted(ids)
