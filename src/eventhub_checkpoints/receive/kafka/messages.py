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
"""How headers are read: `amqp` and `text` hold all of them for the one or the other."""

SECTION = frozenset(
    ("message-id", "user-id", "to", "reply-to", "content-type", "content-encoding", "creation-time")
)
"""What the service writes as text out of the properties section of AMQP."""

SIMPLE = frozenset(
    bytes.fromhex(
        "40 41 42 43 44 50 51 52 53 54 55 56 60 61 70 71 72 73 74 80 81 82 83 84 94 98"
        "a0 a1 a3 b0 b1 b3"
    )
)
"""Constructors of the types that an application property may have."""

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
REMEMBERED, REMEMBERED_BYTES = 4096, 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What the bytes of a header may mean.

    Attributes:
        raw: them as a text, as a producer of Kafka means them.
        value: the text of the AMQP value that they are; None where they are none.
        is_text: whether they can be meant as a text.
    """

    raw: str
    value: str | None
    is_text: bool

    def text(self, as_amqp: bool) -> str:
        """What they say: as AMQP if they are a value of that, else as they are."""
        return self.value if as_amqp and self.value is not None else self.raw

    @property
    def is_surely_amqp(self) -> bool:
        """They are an AMQP value, and nobody writes a text like this."""
        return self.value is not None and not self.is_text

    @property
    def is_surely_raw(self) -> bool:
        """They are no AMQP value."""
        return self.value is None


NULL = Reading("null", None, True)


def read_header(value: bytes | None) -> Reading:
    """What one header may mean."""
    if value is None:
        return NULL
    try:
        value.decode()
        is_text = CONTROL.search(value) is None
    except UnicodeDecodeError:
        is_text = False
    return Reading(as_text(value) or "", read_amqp(value), is_text)


def read_amqp(value: bytes) -> str | None:
    """The text of the one AMQP value that these bytes are, all of them; else None."""
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
    """Reads the headers of record after record into the rows of two columns.

    Where the bytes of a header are both a text and an AMQP value, its siblings decide, for one
    producer wrote them all: one that can only be AMQP makes it AMQP, else one that can only be
    raw makes it a text, else it counts as AMQP. A header `price` alone in its record is therefore
    read as a number, and together with `currency: EUR` as a text.
    """

    def __init__(self, form: HeaderForm) -> None:
        self._form = form
        self._is_plain: dict[tuple[str, ...], bool] = {}
        self._certain: dict[bytes | None, str] = {}

    def maps(self, records: Iterable[Headers]) -> tuple[TextMaps, TextMaps]:
        """Properties and system properties; of a name that comes twice the last one counts."""
        properties, systems = TextMaps(), TextMaps()
        is_plain, certain = self._is_plain, self._certain
        for headers in records:
            if headers:
                names, values = zip(*headers, strict=True)
                try:
                    # Most records have the names of others, and values that were seen before.
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
        """The pairs of one record, and what can be remembered of them."""
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
        """Note the text of a value that means the same in every record."""
        if value is None or len(value) > REMEMBERED_BYTES:
            return
        if len(self._certain) > REMEMBERED:
            self._certain.clear()
        if self._form != "auto":
            self._certain[value] = one.text(self._form == "amqp")
        elif one.is_surely_amqp or one.is_surely_raw:
            self._certain[value] = one.text(one.is_surely_amqp)


def are_amqp(readings: Collection[Reading]) -> bool:
    """Whether those that can be both are AMQP."""
    return any(one.is_surely_amqp for one in readings) or not any(
        one.is_surely_raw for one in readings
    )


def columns_of(messages: Sequence[Message], reader: HeaderReader) -> Columns:
    """The records as columns, a row each, in their order."""
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
