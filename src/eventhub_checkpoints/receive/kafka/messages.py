"""Records of Kafka as columns, with their headers as properties."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns, TextMaps
from eventhub_checkpoints.receive.amqp.decoder.values import as_text

Headers = Sequence[tuple[str, bytes | None]]

HeaderForm = Literal["auto", "amqp", "text"]
"""How headers are read: `amqp` and `text` apply to all of them, `auto` decides per record."""

SECTION = frozenset(
    ("message-id", "user-id", "to", "reply-to", "content-type", "content-encoding", "creation-time")
)
"""Names of fields of the AMQP properties section, which the service writes as strings."""

SIMPLE = frozenset(
    bytes.fromhex(
        "40 41 42 43 44 50 51 52 53 54 55 56 60 61 70 71 72 73 74 80 81 82 83 84 94 98"
        "a0 a1 a3 b0 b1 b3"
    )
)
"""Constructors of the types allowed for application properties."""

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
REMEMBERED, REMEMBERED_BYTES = 4096, 64


@dataclass(frozen=True, slots=True)
class Reading:
    """Possible meanings of the bytes of a header.

    Attributes:
        raw: the bytes as a string, as a Kafka producer means them.
        value: the string form of the AMQP value in the bytes; None if they are not an AMQP value.
        is_text: whether the bytes can be meant as a string.
    """

    raw: str
    value: str | None
    is_text: bool

    def text(self, as_amqp: bool) -> str:
        """Return the header as a string, decoded as AMQP if `as_amqp` and possible."""
        return self.value if as_amqp and self.value is not None else self.raw

    @property
    def is_surely_amqp(self) -> bool:
        """Return whether it is an AMQP value that nobody would write as a string."""
        return self.value is not None and not self.is_text

    @property
    def is_surely_raw(self) -> bool:
        """Return whether it is not an AMQP value."""
        return self.value is None


NULL = Reading("null", None, True)


def read_header(value: bytes | None) -> Reading:
    """Return the possible meanings of one header."""
    if value is None:
        return NULL
    try:
        value.decode()
        is_text = CONTROL.search(value) is None
    except UnicodeDecodeError:
        is_text = False
    return Reading(as_text(value) or "", read_amqp(value), is_text)


def read_amqp(value: bytes) -> str | None:
    """Return the string form of the single AMQP value in these bytes; None if they are not one."""
    if not value or value[0] not in SIMPLE:
        return None
    try:
        found, end = decode(value)
    except CodecError:
        return None
    if end < len(value):
        return None
    return "null" if found is None else as_text(found)


class HeaderReader:
    """Reader of the headers of successive records into the rows of two columns.

    Where the bytes of a header are both a string and an AMQP value, the other headers of the record
    decide, as one producer wrote them all: a header that can only be AMQP makes it AMQP, else one
    that can only be raw makes it a string, else it counts as AMQP. A header `price` alone in its
    record is therefore read as a number, and together with `currency: EUR` as a string.
    """

    def __init__(self, form: HeaderForm) -> None:
        self._form = form
        self._is_plain: dict[tuple[str, ...], bool] = {}
        self._certain: dict[bytes | None, str] = {}

    def maps(self, records: Iterable[Headers]) -> tuple[TextMaps, TextMaps]:
        """Return properties and system properties; the last header of a repeated name counts."""
        properties, systems = TextMaps(), TextMaps()
        is_plain, certain = self._is_plain, self._certain
        for headers in records:
            if headers:
                names, values = zip(*headers, strict=True)
                try:
                    # Most records have the names of earlier ones, and values that were seen before.
                    if is_plain[names]:
                        properties.values += [certain[value] for value in values]
                        properties.keys += names
                    else:
                        self._add(headers, properties, systems)
                except KeyError:
                    self._add(headers, properties, systems)
            properties.ends.append(len(properties.keys))
            systems.ends.append(len(systems.keys))
        return properties, systems

    def _add(self, headers: Headers, properties: TextMaps, systems: TextMaps) -> None:
        """Add the pairs of one record, and cache those that can be reused."""
        readings: dict[str, Reading] = {}
        for name, value in headers:
            readings[name] = one = read_header(value)
            self._remember(value, one)
        for name in sorted(SECTION & readings.keys()) if self._form != "text" else ():
            systems.keys.append(name)
            systems.values.append(readings.pop(name).raw)
        as_amqp = are_amqp(readings.values()) if self._form == "auto" else self._form == "amqp"
        properties.keys += readings
        properties.values += [one.text(as_amqp) for one in readings.values()]
        if len(self._is_plain) > REMEMBERED:
            self._is_plain.clear()
        self._is_plain[tuple(name for name, _ in headers)] = len(readings) == len(headers)

    def _remember(self, value: bytes | None, one: Reading) -> None:
        """Cache the string of a value that means the same in every record."""
        if value is None or len(value) > REMEMBERED_BYTES:
            return
        if len(self._certain) > REMEMBERED:
            self._certain.clear()
        if self._form != "auto":
            self._certain[value] = one.text(self._form == "amqp")
        elif one.is_surely_amqp or one.is_surely_raw:
            self._certain[value] = one.text(one.is_surely_amqp)


def are_amqp(readings: Collection[Reading]) -> bool:
    """Return whether the ambiguous headers of a record are AMQP."""
    return any(one.is_surely_amqp for one in readings) or not any(
        one.is_surely_raw for one in readings
    )


def columns_of(messages: Sequence[Message], reader: HeaderReader) -> Columns:
    """Return the records as columns, one row each, in order."""
    nothing = [None] * len(messages)
    properties, systems = reader.maps(
        cast("Headers", message.headers() or ()) for message in messages
    )
    return Columns(
        numbers=[message.offset() or 0 for message in messages],
        bodies=[message.value() or b"" for message in messages],
        offsets=[*nothing],
        enqueued=[
            None if kind == TIMESTAMP_NOT_AVAILABLE else time
            for kind, time in [message.timestamp() for message in messages]
        ],
        publishers=[*nothing],
        partition_keys=[
            None if key is None else as_text(key) for key in [one.key() for one in messages]
        ],
        properties=properties,
        systems=systems,
    )
