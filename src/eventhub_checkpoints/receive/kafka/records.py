"""Records of one partition of a topic as columns, with their headers as properties."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.address import Stream
from eventhub_checkpoints.receive.columns import (
    ENQUEUED_TIME,
    PARTITION_KEY,
    SEQUENCE_NUMBER,
    Columns,
    Events,
    Text,
    TextMaps,
    as_text,
)
from eventhub_checkpoints.receive.kafka.client import MISSING, OUT_OF_RANGE, ClientErrors

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
    def is_amqp(self) -> bool | None:
        """Return whether it is an AMQP value; None if it can be meant as a string as well."""
        return None if self.is_text and self.value is not None else self.value is not None


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
        content, end = decode(value)
    except CodecError:
        return None
    if end < len(value):
        return None
    return "null" if content is None else as_text(content)


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
        records = [*records]
        properties = self._maps_alike(records)
        if properties is not None:
            return properties, TextMaps([0] * (len(records) + 1))
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

    def _maps_alike(self, records: Sequence[Headers]) -> TextMaps | None:
        """Return the properties of records with equal names and values that were seen before.

        Records of one producer are, and looked up together they cost a third.
        """
        names = tuple(name for name, _ in records[0]) if records else ()
        width = len(names)
        if not self._is_plain.get(names) or {*map(len, records)} != {width}:
            return None
        flat: list[Any] = [*chain.from_iterable(chain.from_iterable(records))]
        all_names: list[Text] = [*names] * len(records)
        values = flat[1::2]
        if flat[::2] != all_names:
            return None
        try:
            texts: list[Text] = [*map(self._certain.__getitem__, values)]
        except KeyError:
            return None
        return TextMaps([*range(0, len(values) + 1, width)], all_names, texts)

    def _add(self, headers: Headers, properties: TextMaps, systems: TextMaps) -> None:
        """Add the pairs of one record, and cache those that can be reused."""
        readings: dict[str, Reading] = {}
        for name, value in headers:
            readings[name] = read_header(value)
            self._remember(value, readings[name])
        for name in sorted(SECTION & readings.keys()) if self._form != "text" else ():
            systems.keys.append(name)
            systems.values.append(readings.pop(name).raw)
        as_amqp = self._form == "amqp"
        if self._form == "auto":
            kinds = {reading.is_amqp for reading in readings.values()}
            as_amqp = True in kinds or False not in kinds
        properties.keys += readings
        properties.values += [reading.text(as_amqp) for reading in readings.values()]
        if len(self._is_plain) > REMEMBERED:
            self._is_plain.clear()
        self._is_plain[tuple(name for name, _ in headers)] = len(readings) == len(headers)

    def _remember(self, value: bytes | None, reading: Reading) -> None:
        """Cache the string of a value that means the same in every record."""
        if value is None or len(value) > REMEMBERED_BYTES:
            return
        if len(self._certain) > REMEMBERED:
            self._certain.clear()
        is_amqp = reading.is_amqp if self._form == "auto" else self._form == "amqp"
        if is_amqp is not None:
            self._certain[value] = reading.text(is_amqp)


class Records(Events):
    """Records of a topic, which have three of the annotations of an event."""

    def __init__(self, messages: Sequence[Message], reader: HeaderReader) -> None:
        self._messages = messages
        headers = (cast("Headers", message.headers() or ()) for message in messages)
        self._properties, self._systems = reader.maps(headers)

    @property
    def bodies(self) -> list[bytes]:
        return [message.value() or b"" for message in self._messages]

    @property
    def properties(self) -> TextMaps:
        return self._properties

    @property
    def systems(self) -> TextMaps:
        return self._systems

    def texts(self, annotation: bytes) -> list[str | None]:
        if annotation != PARTITION_KEY:
            return [None] * len(self._messages)
        return [as_text(message.key()) for message in self._messages]

    def integers(self, annotation: bytes) -> list[int | None]:
        if annotation == SEQUENCE_NUMBER:
            return [message.offset() or 0 for message in self._messages]
        if annotation != ENQUEUED_TIME:
            return [None] * len(self._messages)
        times = [message.timestamp() for message in self._messages]
        return [None if kind == TIMESTAMP_NOT_AVAILABLE else time for kind, time in times]


MESSAGES_AT_ONCE = 500
"""Few enough to be still in the processor's cache when they become columns: with ten times as
many, a record costs half as much again."""

LOOK_EVERY = 1.0
"""Interval (s) at which a stream that gets nothing checks whether it was refused."""

END_PATIENCE = 2.0
"""Seconds for which a partition that ends too early is watched: after a change of its leader the
reported end may be too low for a moment."""


class KafkaStream(Stream):
    """Records from one offset on.

    The partition is assigned manually: no group is joined, and nothing is committed to Kafka. A
    position that the topic does not have ends the stream at once; the reader then finds out why.

    Bound: `queued.max.messages.kbytes` in librdkafka, one server response in transit
    (`fetch.message.max.bytes`), and as much again being converted, at most `MESSAGES_AT_ONCE`
    records.

    Args:
        consumer: closed with the stream.
        errors: receives that consumer's errors.
        reader: of headers.
        position: the partition, and its first offset.
    """

    def __init__(
        self,
        consumer: Consumer,
        errors: ClientErrors,
        reader: HeaderReader,
        position: TopicPartition,
    ) -> None:
        self._consumer = consumer
        self._errors = errors
        self._headers = reader
        self._over = float("inf")
        self._reached = position.offset
        consumer.assign([position])

    @property
    def reached(self) -> int:
        return self._reached

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._over

    def next(self, timeout: float) -> Columns | None:
        deadline = time.monotonic() + timeout
        while (left := min(deadline, self._over) - time.monotonic()) > 0:
            first = self._consumer.poll(min(left, LOOK_EVERY))
            self._errors.raise_denied()
            if first is not None:
                # Available messages only: with a timeout, it would wait to collect all of them.
                rest = self._consumer.consume(MESSAGES_AT_ONCE - 1, 0)
                before = self._reached
                records = self._records([first, *rest])
                if self._reached > before:
                    return Columns.of(Records(records, self._headers))
        return None

    def close(self) -> None:
        self._consumer.close()

    def _records(self, messages: list[Message]) -> list[Message]:
        """Return the records among the messages; the others are events of the partition."""
        records = [message for message in messages if message.error() is None]
        if records:
            self._reach((records[-1].offset() or 0) + 1)
        if len(records) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    self._handle(error, message.offset() or 0)
        return records

    def _handle(self, error: KafkaError, offset: int) -> None:
        """Handle an error message that may be the end of the stream.

        At the end of a partition the offset is that end: after the last record there may be
        transaction markers, and offsets of aborted or compacted records. librdkafka recovers from
        all other errors; group errors do not matter, as the group is not used.
        """
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self._reach(offset)
            self._over = time.monotonic() + END_PATIENCE
        elif code in OUT_OF_RANGE | MISSING:
            self._over = time.monotonic()
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED:
            self._errors.raise_if_final(error)

    def _reach(self, offset: int) -> None:
        if offset > self._reached:
            self._reached, self._over = offset, float("inf")
