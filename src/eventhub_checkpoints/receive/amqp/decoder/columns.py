"""Columns of events of one partition: plain lists, from which Arrow arrays can be made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Text = str | bytes
"""A string, or its UTF-8 encoding."""


@dataclass(slots=True)
class TextMaps:
    """Column of maps from string to string, flat as in Arrow.

    Attributes:
        ends: end of each row's pairs, preceded by 0, the begin of the first row.
        keys, values: the pairs of all rows.
    """

    ends: list[int] = field(default_factory=lambda: [0])
    keys: list[Text] = field(default_factory=list)
    values: list[Text] = field(default_factory=list)

    def add(self, pairs: Mapping[Text, Text]) -> None:
        """Append one row."""
        self.keys += pairs.keys()
        self.values += pairs.values()
        self.ends.append(len(self.keys))

    def part(self, begin: int, end: int) -> "TextMaps":
        """Return the rows from `begin` up to, not including, `end`."""
        first, last = self.ends[begin], self.ends[end]
        ends = [one - first for one in self.ends[begin : end + 1]]
        return TextMaps(ends, self.keys[first:last], self.values[first:last])

    def extend(self, more: "TextMaps") -> None:
        """Append the rows of another column."""
        base = self.ends[-1]
        self.ends += [base + one for one in more.ends[1:]]
        self.keys += more.keys
        self.values += more.values


@dataclass(slots=True)
class Columns:
    """Events of one partition in order: one list per column, one item per row.

    Attributes:
        numbers: sequence numbers.
        bodies: payloads; several data sections are joined.
        offsets: opaque; None where the transport has none.
        enqueued: milliseconds since the epoch; None where there is no time.
        publishers, partition_keys: None where there is none.
        properties: application properties, each value as a string.
        systems: other values set by the service or the producer's client, each as a string.
    """

    numbers: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    offsets: list[Text | None] = field(default_factory=list)
    enqueued: list[int | None] = field(default_factory=list)
    publishers: list[Text | None] = field(default_factory=list)
    partition_keys: list[Text | None] = field(default_factory=list)
    properties: TextMaps = field(default_factory=TextMaps)
    systems: TextMaps = field(default_factory=TextMaps)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size(self) -> int:
        """Total size of all bodies, in bytes."""
        return sum(map(len, self.bodies))

    def part(self, begin: int, end: int) -> "Columns":
        """Return the rows from `begin` up to, not including, `end`."""
        return Columns(
            self.numbers[begin:end],
            self.bodies[begin:end],
            self.offsets[begin:end],
            self.enqueued[begin:end],
            self.publishers[begin:end],
            self.partition_keys[begin:end],
            self.properties.part(begin, end),
            self.systems.part(begin, end),
        )

    def extend(self, more: "Columns") -> None:
        """Append the rows of other columns."""
        self.numbers += more.numbers
        self.bodies += more.bodies
        self.offsets += more.offsets
        self.enqueued += more.enqueued
        self.publishers += more.publishers
        self.partition_keys += more.partition_keys
        self.properties.extend(more.properties)
        self.systems.extend(more.systems)

    @classmethod
    def joined(cls, parts: Iterable["Columns"]) -> "Columns":
        """Return the rows of all parts, one part after another."""
        whole = cls()
        for part in parts:
            whole.extend(part)
        return whole
