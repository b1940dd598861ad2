"""Events of one partition as columns: lists that Arrow, or anything else, can be made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Text = str | bytes
"""Text, or the UTF-8 of it."""


@dataclass(slots=True)
class TextMaps:
    """A column of maps from text to text, flat as Arrow keeps it.

    Attributes:
        ends: where each row's pairs end; the first row's begin at 0, and `ends` begins with that.
        keys, values: the pairs of all rows.
    """

    ends: list[int] = field(default_factory=lambda: [0])
    keys: list[Text] = field(default_factory=list)
    values: list[Text] = field(default_factory=list)

    def add(self, pairs: Mapping[Text, Text]) -> None:
        """One more row."""
        self.keys += pairs.keys()
        self.values += pairs.values()
        self.ends.append(len(self.keys))

    def part(self, begin: int, end: int) -> "TextMaps":
        """The rows from `begin` until `end`."""
        first, last = self.ends[begin], self.ends[end]
        ends = [one - first for one in self.ends[begin : end + 1]]
        return TextMaps(ends, self.keys[first:last], self.values[first:last])

    def extend(self, more: "TextMaps") -> None:
        """The rows of another column behind these."""
        base = self.ends[-1]
        self.ends += [base + one for one in more.ends[1:]]
        self.keys += more.keys
        self.values += more.values


@dataclass(slots=True)
class Columns:
    """Some events of one partition, in their order: a list for each column, a place for each row.

    Attributes:
        numbers: sequence numbers.
        bodies: payloads; several data sections are joined.
        offsets: opaque; None where the transport has none.
        enqueued: milliseconds since the epoch.
        publishers, partition_keys: None where there is none.
        properties: application properties, each value as text.
        systems: what else the service and the producer's client have noted, each value as text.
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
        """Bytes of all bodies."""
        return sum(map(len, self.bodies))

    def part(self, begin: int, end: int) -> "Columns":
        """The rows from `begin` until `end`, by place."""
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
        """The rows of other columns behind these."""
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
        """The rows of all parts, one after another."""
        whole = cls()
        for part in parts:
            whole.extend(part)
        return whole
