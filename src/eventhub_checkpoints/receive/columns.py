"""Columns of received events: the name and type of each, and where its values come from.

A column is declared once, as a field of `Columns`. The Arrow schema, the schema of the Spark source
and what is taken from received events follow from the declaration. The fast decoder, the official
client and Kafka each offer their events as `Events`, so a declaration covers all three.
"""
# ruff: noqa: RUF009  (the calls in the class declare fields; they return no shared default)

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter, methodcaller
from typing import Any, Literal, NamedTuple, Protocol, Self

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PUBLISHER = b"x-opt-publisher"
PARTITION_KEY = b"x-opt-partition-key"
IN_OTHER_COLUMNS = frozenset({SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME})
"""Annotations that are not repeated in the system properties, as in the JVM connector."""

Text = str | bytes
"""A string, or its UTF-8 encoding."""

Type = Literal["binary", "string", "bigint", "timestamp", "map<string,string>"]
"""Type of a column, as Spark names it."""


@dataclass(slots=True)
class TextMaps:
    """Column of maps from string to string, stored as in Arrow: flat lists and offsets.

    Attributes:
        ends: offsets as in Arrow: 0, then the end of each row's pairs.
        keys, values: the pairs of all rows.
    """

    ends: list[int] = field(default_factory=lambda: [0])
    keys: list[Text] = field(default_factory=list)
    values: list[Text] = field(default_factory=list)

    @classmethod
    def of(cls, maps: Iterable[Mapping[Any, Any] | None]) -> Self:
        """Convert maps to a column; the strings of all of them are converted at once."""
        ends = [0]
        keys: list[Any] = []
        values: list[Any] = []
        for pairs in maps:
            if pairs:
                keys += pairs.keys()
                values += pairs.values()
            ends.append(len(keys))
        return cls(ends, as_texts(keys), as_texts(values))

    def __getitem__(self, rows: slice) -> "TextMaps":
        begin, end, _ = rows.indices(len(self.ends) - 1)
        first, last = self.ends[begin], self.ends[end]
        ends = [at - first for at in self.ends[begin : end + 1]]
        return TextMaps(ends, self.keys[first:last], self.values[first:last])

    def extend(self, more: "TextMaps") -> None:
        """Append the rows of another column."""
        base = self.ends[-1]
        self.ends += [base + at for at in more.ends[1:]]
        self.keys += more.keys
        self.values += more.values


class Events(Protocol):
    """Events of one partition in order, as a source received them."""

    @property
    def bodies(self) -> list[bytes]:
        """Return the payloads; several data sections are joined."""

    @property
    def properties(self) -> TextMaps:
        """Return the application properties, each value as a string."""

    @property
    def systems(self) -> TextMaps:
        """Return other values set by the service or the producer's client, each as a string."""

    def texts(self, annotation: bytes) -> Sequence[Text | None]:
        """Return the values of a message annotation as strings; None where it is missing."""

    def integers(self, annotation: bytes) -> Sequence[int | None]:
        """Return the values of a message annotation that is a number; None where it is missing."""


class Column(NamedTuple):
    """Declaration of a column: its name in Arrow and Spark, its type, and how to read it.

    Attributes:
        annotation: message annotation that it holds; None: it holds something else.
    """

    name: str
    type: Type
    read: Callable[[Events], Any]
    annotation: bytes | None


def column(name: str, kind: Type, source: bytes | Callable[[Events], Any]) -> Any:
    """Declare a column as a field of `Columns`, read from a message annotation or by a function."""
    empty = TextMaps if kind == "map<string,string>" else list
    if isinstance(source, bytes):
        values = "texts" if kind == "string" else "integers"
        declared = Column(name, kind, methodcaller(values, source), source)
    else:
        declared = Column(name, kind, source, None)
    return field(default_factory=empty, metadata={"column": declared})


@dataclass(slots=True, kw_only=True)
class Columns:
    """Events of one partition in order: one list per column, one item per row.

    Attributes:
        offsets: opaque; None where the transport has none.
        enqueued: milliseconds since the epoch; None where there is no time.
        publishers, partition_keys: None where an event has none.
        size: total size of all bodies, in bytes.
    """

    bodies: list[bytes] = column("body", "binary", attrgetter("bodies"))
    offsets: list[Text | None] = column("offset", "string", OFFSET)
    numbers: list[int] = column("sequenceNumber", "bigint", SEQUENCE_NUMBER)
    enqueued: list[int | None] = column("enqueuedTime", "timestamp", ENQUEUED_TIME)
    publishers: list[Text | None] = column("publisher", "string", PUBLISHER)
    partition_keys: list[Text | None] = column("partitionKey", "string", PARTITION_KEY)
    properties: TextMaps = column("properties", "map<string,string>", attrgetter("properties"))
    systems: TextMaps = column("systemProperties", "map<string,string>", attrgetter("systems"))

    # Counted once: to read the length of a body is to fetch it into the cache again.
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.size = sum(map(len, self.bodies))

    @classmethod
    def of(cls, events: Events, fields: Collection[str] | None = None) -> Self:
        """Return the events as columns; None: all of them, else others than these stay empty."""
        names = COLUMNS if fields is None else {*NEEDED, *fields}
        return cls(**{name: COLUMNS[name].read(events) for name in names})

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, begin: int, end: int) -> "Columns":
        """Return the rows from `begin` up to, not including, `end`."""
        return Columns(**{name: getattr(self, name)[begin:end] for name in COLUMNS})

    def extend(self, more: "Columns") -> None:
        """Append the rows of other columns."""
        for name in COLUMNS:
            getattr(self, name).extend(getattr(more, name))
        self.size += more.size

    @classmethod
    def joined(cls, parts: Iterable["Columns"]) -> Self:
        """Return the rows of all parts, one part after another."""
        whole = cls()
        for part in parts:
            whole.extend(part)
        return whole


COLUMNS: Mapping[str, Column] = {
    declared.name: declared.metadata["column"]
    for declared in fields(Columns)
    if "column" in declared.metadata
}
"""Declarations by field of `Columns`."""

NEEDED = ("bodies", "offsets", "numbers")
"""Fields that are always filled: by them, events are counted, and bounded in size."""

PARTITION = "partition"
"""Column that holds the partition id, the same in all rows of a batch."""


def column_types() -> dict[str, Type]:
    """Return the type of each column by name; the JVM connector's nine come first, in its order."""
    body, *others = ((declared.name, declared.type) for declared in COLUMNS.values())
    return dict([body, (PARTITION, "string"), *others])


_as_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def as_text(value: Any) -> str | None:
    """Return an AMQP value as a column's string: a string as it is, others as JSON; None as None.

    As in the JVM connector, with two differences, because the Python client no longer knows the
    type: an AMQP timestamp or enumeration becomes its number, and a binary value that happens to be
    UTF-8 becomes a string.
    """
    return None if value is None else _text(value)


def as_texts(values: Iterable[Any]) -> list[Text]:
    """Return values as strings; null becomes JSON's `null`."""
    values = list(values)
    try:
        # Nearly all values are UTF-8 bytes; a call for each would double the cost.
        return [value.decode() if type(value) is bytes else _text(value) for value in values]
    except UnicodeDecodeError:
        return [_text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    kind = type(value)
    if kind is int:
        return str(value)
    return _as_json(value if kind is float or kind is bool else _json_value(value))


def _json_value(value: Any) -> Any:
    """Return a value that JSON can hold; bytes other than UTF-8 become signed bytes, as in Java."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return [byte - 256 if byte > 127 else byte for byte in bytes(value)]
    if isinstance(value, Mapping):
        return {_text(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
