"""Received rows until they are taken: matched by templates, or read without one.

A frame of a known template costs one match. The contents of its groups go to one flat list, which
gives the garbage collector nothing to do, and are converted to columns for all rows at once. Where
only the head of a template is known, the tail of each frame is decoded.
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections import Counter
from itertools import accumulate, chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from eventhub_checkpoints.receive.amqp.decoder.events import read_tail
from eventhub_checkpoints.receive.amqp.decoder.templates import NULL
from eventhub_checkpoints.receive.columns import Columns, Events, Text, TextMaps, as_text, as_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from eventhub_checkpoints.receive.amqp.decoder.events import Event, Pairs, Tail
    from eventhub_checkpoints.receive.amqp.decoder.templates import FrameTemplate, Groups, Slot

Match: TypeAlias = "Callable[[bytes, int, int], re.Match[bytes] | None]"
T = TypeVar("T")

_size32 = struct.Struct(">I").pack
_SMALL_BINARY = [bytes((0xA0, size)) for size in range(256)]


def _small_sizes(lengths: Iterable[int]) -> bytes:
    try:
        return bytes(lengths)
    except ValueError:
        return b""


def _sizes32(lengths: Iterable[int]) -> bytes:
    sizes = [*lengths]
    return struct.pack(f">{len(sizes)}I", *sizes)


def _binary_heads(lengths: Iterable[int]) -> bytes:
    sizes = [*lengths]
    if min(sizes, default=0) < 256:
        return b"".join(
            [_SMALL_BINARY[size] if size < 256 else b"\xb0" + _size32(size) for size in sizes]
        )
    # All have the long form: to write it in four columns takes a third of the time.
    heads, encoded = bytearray(b"\xb0" * 5 * len(sizes)), _sizes32(sizes)
    for byte in range(4):
        heads[byte + 1 :: 5] = encoded[byte::4]
    return bytes(heads)


_EXPECTED: Mapping[int, Callable[[Iterable[int]], bytes]] = {
    0: _binary_heads,
    1: _small_sizes,
    4: _sizes32,
}
"""Encoders of lengths by width of the size in bytes; 0 is a binary value with its constructor.

Sizes that are encoded otherwise, such as 7 in four bytes, are checked one by one.
"""


class Maps(NamedTuple):
    """Column of maps: the keys of each row, and the values of all rows one after another.

    Rows of one template share their keys. A list of values per row would burden the garbage
    collector: with it, making columns takes three times as long.
    """

    keys: list[Sequence[Text]]
    values: list[Text]

    @classmethod
    def of_slots(cls, named: list[tuple[Text, Slot]], groups: Groups, count: int) -> Maps:
        """Return the maps of `count` rows with the same keys."""
        values: list[Text] = [""] * (count * len(named))
        for index, (_, slot) in enumerate(named):
            values[index :: len(named)] = slot.texts(groups, count)
        return cls([tuple(name for name, _ in named)] * count, values)

    @classmethod
    def of_pairs(cls, pairs: Sequence[Pairs]) -> Maps:
        """Return the maps of decoded rows; all strings are converted in one call."""
        ends = accumulate(map(len, pairs), initial=0)
        keys = as_texts(chain.from_iterable(pairs))
        values = as_texts(chain.from_iterable(row.values() for row in pairs))
        return cls([keys[begin:end] for begin, end in pairwise(ends)], values)

    def merged(self, others: Maps) -> Maps:
        """Merge two columns: each row has the pairs of this column, then those of the other."""
        both = Maps([], [])
        left, right = iter(self.values), iter(others.values)
        for keys, more in zip(self.keys, others.keys, strict=True):
            both.keys.append((*keys, *more))
            both.values.extend(islice(left, len(keys)))
            both.values.extend(islice(right, len(more)))
        return both

    def flat(self) -> TextMaps:
        """Return the column in flat form."""
        ends = [*accumulate(map(len, self.keys), initial=0)]
        return TextMaps(ends, [*chain.from_iterable(self.keys)], self.values)


class Rows(Events):
    """Rows taken from one buffer."""

    @abstractmethod
    def property_maps(self) -> Maps:
        """Return the application properties."""

    @abstractmethod
    def system_maps(self) -> Maps:
        """Return the system properties."""

    @property
    def properties(self) -> TextMaps:
        return self.property_maps().flat()

    @property
    def systems(self) -> TextMaps:
        return self.system_maps().flat()


class EventRows(Rows):
    """Rows that were read without a template."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    @property
    def bodies(self) -> list[bytes]:
        return [event.body for event in self._events]

    def texts(self, annotation: bytes) -> list[Text | None]:
        return [as_text(event.annotations.get(annotation)) for event in self._events]

    def integers(self, annotation: bytes) -> list[int | None]:
        values = [event.annotations.get(annotation) for event in self._events]
        return [None if value is None else int(value) for value in values]

    def property_maps(self) -> Maps:
        return Maps.of_pairs([event.properties for event in self._events])

    def system_maps(self) -> Maps:
        return Maps.of_pairs([event.systems for event in self._events])


class MatchedRows(Rows):
    """Rows of one template; with `tails` where only the heads were matched."""

    def __init__(
        self, template: FrameTemplate, groups: Groups, count: int, tails: Sequence[Tail] | None
    ) -> None:
        self._template, self._groups, self._count, self._tails = template, groups, count, tails

    @property
    def bodies(self) -> list[bytes]:
        return self._groups[-1]

    def texts(self, annotation: bytes) -> list[Text | None]:
        slot = self._template.annotations.get(annotation, NULL)
        return slot.nullable(self._groups, self._count)

    def integers(self, annotation: bytes) -> list[int | None]:
        slot = self._template.annotations.get(annotation)
        return [None] * self._count if slot is None else [*slot.integers(self._groups, self._count)]

    @property
    def properties(self) -> TextMaps:
        if self._tails is not None:
            return super().properties
        return self._flat(self._template.properties)

    @property
    def systems(self) -> TextMaps:
        if self._tails is not None:
            return super().systems
        return self._flat(self._template.systems)

    def _flat(self, named: list[tuple[Text, Slot]]) -> TextMaps:
        """Return the maps of rows with the same keys in flat form, at once."""
        names, count, width = [name for name, _ in named], self._count, len(named)
        ends = [*range(0, count * width + 1, width)] if width else [0] * (count + 1)
        return TextMaps(ends, names * count, Maps.of_slots(named, self._groups, count).values)

    def property_maps(self) -> Maps:
        if self._tails is not None:
            return Maps.of_pairs([tail.properties for tail in self._tails])
        return Maps.of_slots(self._template.properties, self._groups, self._count)

    def system_maps(self) -> Maps:
        if self._tails is None:
            return Maps.of_slots(self._template.systems, self._groups, self._count)
        others = Maps.of_slots(self._template.others, self._groups, self._count)
        return Maps.of_pairs([tail.systems for tail in self._tails]).merged(others)


class InterleavedRows(Rows):
    """Rows of several buffers in the order in which they arrived.

    Args:
        parts: the rows of each buffer.
        order: the buffer of each row.
    """

    def __init__(self, parts: Mapping[Buffer, Rows], order: Sequence[Buffer]) -> None:
        self._parts, self._order = parts, order

    @property
    def bodies(self) -> list[bytes]:
        return self._merged(lambda rows: rows.bodies)

    def texts(self, annotation: bytes) -> list[Text | None]:
        return self._merged(lambda rows: rows.texts(annotation))

    def integers(self, annotation: bytes) -> list[int | None]:
        return self._merged(lambda rows: rows.integers(annotation))

    def property_maps(self) -> Maps:
        return self._merged_maps(lambda rows: rows.property_maps())

    def system_maps(self) -> Maps:
        return self._merged_maps(lambda rows: rows.system_maps())

    def _merged(self, column: Callable[[Rows], Iterable[T]]) -> list[T]:
        # Each row takes the next value of its buffer: no index is computed, and memory is read
        # in the order in which it was written.
        values = {buffer: iter(column(rows)) for buffer, rows in self._parts.items()}
        return [*map(next, map(values.__getitem__, self._order))]

    def _merged_maps(self, column: Callable[[Rows], Maps]) -> Maps:
        maps = {rows: column(rows) for rows in self._parts.values()}
        keys = self._merged(lambda rows: maps[rows].keys)
        values = {buffer: iter(maps[rows].values) for buffer, rows in self._parts.items()}
        of_rows = map(islice, map(values.__getitem__, self._order), map(len, keys))
        return Maps(keys, [*chain.from_iterable(of_rows)])


class Buffer(ABC):
    """Rows not taken yet, of one template or without one."""

    @abstractmethod
    def cut(self, count: int) -> Rows:
        """Remove the first rows and return them."""

    @abstractmethod
    def drop(self, begin: int, end: int | None) -> None:
        """Drop rows that were not verified yet."""


class EventBuffer(Buffer):
    """Events that were read without a template."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def cut(self, count: int) -> Rows:
        first, self.events = self.events[:count], self.events[count:]
        return EventRows(first)

    def drop(self, begin: int, end: int | None) -> None:
        del self.events[begin:end]


class Matcher(Buffer):
    """Compiled template, or its head alone, and the contents of the groups that it matched.

    Attributes:
        template: slots of the values.
        regex: regular expression for the frame, or for its head.
        match: the compiled match function.
        is_whole: whether the regex covers whole frames; else each tail is decoded separately.
        contents: contents of the groups of all rows, row by row; the last group is the body.
        checked: number of rows whose sizes were verified.
        hits: rows since the last epoch of `learning`.
    """

    def __init__(self, template: FrameTemplate, regex: bytes, *, is_whole: bool) -> None:
        head, tail = template.head, template.tail
        self.template, self.regex, self.is_whole = template, regex, is_whole
        self.match: Match = re.compile(regex, re.DOTALL).match
        self._sizes = head.sizes + tail.sizes if is_whole else head.sizes
        self._width = tail.groups if is_whole else head.groups + 1
        self._tails: list[Tail] = []
        self.contents: list[bytes] = []
        self.checked = self.hits = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.contents) // self._width

    def add_head(self, match: re.Match[bytes], data: bytes, end: int) -> bool:
        """Add a row; return False, adding none, if the bytes after the head are unusual."""
        tail = read_tail(data, match.end(), end)
        if tail is None:
            return False
        self.contents += match.groups()
        self.contents.append(tail.body)
        self._tails.append(tail)
        return True

    def misread(self) -> list[int]:
        """Verify sizes in the unchecked rows; return the rows where one is wrong.

        The regular expression ends a value at the first bytes that look like its end, which may
        lie inside the value. Such a row is read without a template.
        """
        wrong: set[int] = set()
        unchecked = self.contents[self.checked * self._width :]
        for group, width in self._sizes:
            sizes, contents = unchecked[group :: self._width], unchecked[group + 1 :: self._width]
            if b"".join(sizes) != _EXPECTED[width](map(len, contents)):
                skipped = 0 if width else 1
                rows = enumerate(zip(sizes, contents, strict=True), self.checked)
                wrong.update(
                    row
                    for row, (size, content) in rows
                    if int.from_bytes(size[skipped:], "big") != len(content)
                )
        return sorted(wrong)

    def check(self) -> int:
        """Mark all rows as checked; return the size in bytes of the newly checked bodies."""
        size = sum(map(len, self._column(self._width - 1, self.checked)))
        self.hits += self.rows - self.checked
        self.checked = self.rows
        return size

    def delivery_ids(self, begin: int) -> list[int]:
        """Return the delivery ids of the rows from `begin` on."""
        slot = self.template.delivery_id
        if slot.group is None:
            return [0] * (self.rows - begin)
        return [int.from_bytes(content, "big") for content in self._column(slot.group, begin)]

    def cut(self, count: int) -> Rows:
        end = count * self._width
        first, self.contents = self.contents[:end], self.contents[end:]
        tails, self._tails = self._tails[:count], self._tails[count:]
        self.checked -= count
        groups = [first[group :: self._width] for group in range(self._width)]
        return MatchedRows(self.template, groups, count, None if self.is_whole else tails)

    def drop(self, begin: int, end: int | None) -> None:
        stop = None if end is None else end * self._width
        del self.contents[begin * self._width : stop]
        del self._tails[begin:end]

    def _column(self, group: int, begin: int) -> list[bytes]:
        return self.contents[begin * self._width + group :: self._width]


class PendingRows:
    """All rows not taken yet, in order.

    Attributes:
        order: the buffer of each row.
        generic: the events that were read without a template.
    """

    def __init__(self) -> None:
        self.order: list[Buffer] = []
        self.generic = EventBuffer()

    def add(self, events: list[Event]) -> None:
        """Append events that were read without a template."""
        self.generic.events += events
        self.order += [self.generic] * len(events)

    def take(self, rows: int, fields: Collection[str] | None) -> Columns:
        """Remove the first rows and return them as columns; see `Columns.of`."""
        order, self.order = self.order[:rows], self.order[rows:]
        parts = {buffer: buffer.cut(count) for buffer, count in Counter(order).items()}
        if len(parts) > 1:
            return Columns.of(InterleavedRows(parts, order), fields)
        return Columns.of(next(iter(parts.values())), fields) if parts else Columns()

    def last_delivery_id(self) -> int:
        """Return the delivery id of the last row, which was matched."""
        matcher = self.order[-1]
        assert isinstance(matcher, Matcher)
        return matcher.delivery_ids(matcher.rows - 1)[0]

    def matchers(self, begin: int) -> list[Matcher]:
        """Return the matchers of the rows from `begin` on, all of which were matched."""
        return [
            buffer for buffer in dict.fromkeys(self.order[begin:]) if isinstance(buffer, Matcher)
        ]

    def misread(self, matchers: list[Matcher]) -> list[int]:
        """Return the indexes of unchecked rows that were misread, in order."""
        wrong: list[int] = []
        for matcher in matchers:
            if rows := matcher.misread():
                indexes = [index for index, buffer in enumerate(self.order) if buffer is matcher]
                wrong += [indexes[row] for row in rows]
        return sorted(wrong)

    def replace(self, index: int, event: Event) -> None:
        """Replace a misread row by an event."""
        before, buffer = self.order[:index], self.order[index]
        row = before.count(buffer)
        buffer.drop(row, row + 1)
        self.generic.events.insert(before.count(self.generic), event)
        self.order[index] = self.generic

    def cut_off(self, index: int) -> None:
        """Drop the rows from an index on."""
        kept = self.order[:index]
        for buffer in dict.fromkeys(self.order[index:]):
            buffer.drop(kept.count(buffer), None)
        self.order = kept
