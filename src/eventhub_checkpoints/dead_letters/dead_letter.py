"""Dead letters: events that could not be processed, with where they came from and why.

Their formats: a line of JSON, for files and tables, and an event with application properties, for
a hub. All of this is pure.
"""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Self, TypeVar
from uuid import UUID

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpMessageBodyType

from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import name_of, require_type
from eventhub_checkpoints._shared.times import parse_time
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.records import Scope, checked_sequence_number, whole_number

PREFIX = "dead-letter-"
"""Begins the application properties that a dead letter adds to its event."""
LONGEST_MESSAGE = 1000
"""Characters of an error's message that are kept: the service limits the size of an event."""
AMQP_PROPERTIES = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "creation_time"),
    *("group_id", "group_sequence", "reply_to_group_id"),
)
"""Source: AMQP 1.0, 3.2.4, and `azure.eventhub.amqp.AmqpMessageProperties`."""
INT_BITS, LONG_BITS = 31, 63
MALFORMED = (ValueError, TypeError, LookupError, AttributeError)
"""What reading a dead letter raises where it is something else."""
T = TypeVar("T")


@contextmanager
def reading() -> Iterator[None]:
    """Raise a `ConfigurationError` where what is read is no dead letter.

    Errors of this package, such as that of a name which cannot be one, are raised as they are.
    """
    try:
        yield
    except CheckpointStoreError:
        raise
    except MALFORMED as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else message_of(error)
        raise ConfigurationError(f"this is no dead letter: {reason}") from None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Event that could not be processed, with where it came from and why.

    Attributes:
        scope: the hub, and the consumer group that could not process the event.
        partition_id, sequence_number, offset: of the event in that hub.
        enqueued_time: UTC; None if the service has not set it.
        partition_key: None if it was sent without one.
        body: the event's payload.
        properties: its application properties. The client delivers strings as bytes, so bytes that
            are UTF-8 are kept as a string.
        amqp_properties: those of `AmqpMessageProperties` that are set, such as `content_type`.
        error_type, error_message: what the handler raised; secrets are masked.
        time: when it failed. UTC.
        redrives: number of times that the event was sent back before.
    """

    scope: Scope
    partition_id: str
    sequence_number: int
    offset: str | None
    enqueued_time: datetime | None
    partition_key: str | None
    body: bytes = field(repr=False)
    properties: Mapping[str, Any] = field(repr=False)
    amqp_properties: Mapping[str, Any] = field(repr=False)
    error_type: str
    error_message: str
    time: datetime
    redrives: int = 0

    @classmethod
    def of(cls, context: Any, event: EventData, error: BaseException) -> Self:
        """Create a dead letter from the arguments of `on_poison`; its time is now.

        Raises:
            ConfigurationError: they are something else.
        """
        require_type("context", context, hasattr(context, "partition_id"), "a PartitionContext")
        require_type("event", event, isinstance(event, EventData), "an EventData")
        require_type("error", error, isinstance(error, BaseException), "an exception")
        scope = Scope._make(
            (context.fully_qualified_namespace, context.eventhub_name, context.consumer_group)
        )
        return cls(
            scope,
            context.partition_id,
            int(event.sequence_number or 0),
            event.offset,
            event.enqueued_time,
            text_of(event.partition_key),
            body_of(event),
            own_properties(event),
            amqp_properties(event),
            name_of(type(error)),
            message_of(error, LONGEST_MESSAGE),
            datetime.now(UTC),
            whole_number(added_properties(event).get("redrives")) or 0,
        )

    @property
    def id(self) -> str:
        """Return 12 hexadecimal digits that are always the same for an event and a group."""
        names = [
            *self.scope.folded,
            self.partition_id,
            self.sequence_number,
            iso(self.enqueued_time),
        ]
        return blake2b(json.dumps(names).encode(), digest_size=6).hexdigest()

    @property
    def origin(self) -> dict[str, Any]:
        """Return where the dead letter came from and why, under the names that the JSON has."""
        return {
            "id": self.id,
            **self.scope.as_dict(),
            "partition_id": self.partition_id,
            "sequence_number": self.sequence_number,
            "offset": self.offset,
            "enqueued_time": iso(self.enqueued_time),
            "error_type": self.error_type,
            "error_message": self.error_message,
            "time": iso(self.time),
            "redrives": self.redrives,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the dead letter for JSON."""
        body, encoding = encoded_body(self.body)
        return {
            **self.origin,
            "partition_key": self.partition_key,
            "properties": {name: to_plain(value) for name, value in self.properties.items()},
            "amqp_properties": {
                name: to_plain(value) for name, value in self.amqp_properties.items()
            },
            "body_encoding": encoding,
            "body": body,
        }

    def to_json(self) -> str:
        """Return the dead letter as one line of JSON."""
        return json.dumps(self.as_dict())

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Create a dead letter from what `as_dict` returned.

        Raises:
            ConfigurationError, InvalidRecordError: it is something else.
        """
        with reading():
            return cls._of_row(row)

    @classmethod
    def _of_row(cls, row: Mapping[str, Any]) -> Self:
        amqp_properties = row["amqp_properties"]
        if unknown := amqp_properties.keys() - AMQP_PROPERTIES:
            raise ValueError(f"amqp_properties has {quoted(unknown)}; expected AMQP's own names")
        return cls(
            Scope.from_dict(row),
            string(row["partition_id"]),
            checked_sequence_number(row["sequence_number"]),
            optional(string, row["offset"]),
            optional(parse_time, row["enqueued_time"]),
            optional(string, row["partition_key"]),
            decoded_body(row["body"], row["body_encoding"]),
            {name: from_plain(value) for name, value in row["properties"].items()},
            {name: from_plain(value) for name, value in amqp_properties.items()},
            string(row["error_type"]),
            string(row["error_message"]),
            parse_time(row["time"]),
            checked_sequence_number(row["redrives"]),
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Create a dead letter from what `to_json` returned.

        Raises:
            ConfigurationError, InvalidRecordError: it is something else.
        """
        with reading():
            return cls._of_row(parse_json(text))

    def to_event(self) -> EventData:
        """Return the event to send, with its origin; the producer is given the partition key."""
        event = EventData(self.body)
        origin = {
            f"{PREFIX}{name.replace('_', '-')}": value
            for name, value in self.origin.items()
            if value is not None
        }
        values = {**self.properties, **origin}
        event.properties = {name: to_amqp(value) for name, value in values.items()}
        properties = event.raw_amqp_message.properties
        for name, value in self.amqp_properties.items():
            setattr(properties, name, value)
        return event

    @classmethod
    def from_event(cls, event: EventData) -> Self:
        """Create a dead letter from an event of a hub of dead letters.

        Raises:
            ConfigurationError, InvalidRecordError: it is another event.
        """
        require_type("event", event, isinstance(event, EventData), "an EventData")
        dead_letter = cls.from_dict(
            {
                "offset": None,
                "enqueued_time": None,
                **added_properties(event),
                "partition_key": None,
                "properties": {},
                "amqp_properties": {},
                "body": "",
                "body_encoding": "utf-8",
            }
        )
        return replace(
            dead_letter,
            partition_key=text_of(event.partition_key),
            body=body_of(event),
            properties=own_properties(event),
            amqp_properties=amqp_properties(event),
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """Record that a dead letter was redriven, or discarded.

    Attributes:
        dead_letter_id: which dead letter.
        time: when. UTC.
        redriven_to: the hub that it was sent to; None: it was discarded.
    """

    dead_letter_id: str
    time: datetime
    redriven_to: str | None

    @classmethod
    def of(cls, dead_letter: DeadLetter, redriven_to: str | None) -> Self:
        """Create a mark with the current time, or the dead letter's if this clock is behind it."""
        return cls(dead_letter.id, max(datetime.now(UTC), dead_letter.time), redriven_to)

    def as_dict(self) -> dict[str, Any]:
        """Return the mark for JSON."""
        if self.redriven_to is None:
            return {"discarded": self.dead_letter_id, "time": iso(self.time)}
        return {"redriven": self.dead_letter_id, "to": self.redriven_to, "time": iso(self.time)}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Create a mark from what `as_dict` returned.

        Raises:
            ValueError, TypeError, LookupError: it is something else.
        """
        time = parse_time(row["time"])
        if "discarded" in row:
            return cls(string(row["discarded"]), time, None)
        return cls(string(row["redriven"]), time, string(row["to"]))

    def to_event(self) -> EventData:
        """Return the mark as an event of a hub of dead letters."""
        event = EventData(b"")
        event.properties = {f"{PREFIX}{name}": value for name, value in self.as_dict().items()}
        return event

    @classmethod
    def from_event(cls, event: EventData) -> Self:
        """Create a mark from what `to_event` returned.

        Raises:
            ValueError, TypeError, LookupError: it is another event.
        """
        return cls.from_dict(added_properties(event))


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """Dead letter in a sink, and whether it was sent back.

    Attributes:
        dead_letter: the dead letter.
        redriven_time: when it was redriven; None if it was not redriven since its last failure.
        redriven_to: the hub that it was sent to.
    """

    dead_letter: DeadLetter
    redriven_time: datetime | None = None
    redriven_to: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the dead letter for JSON."""
        return {
            **self.dead_letter.as_dict(),
            "redriven_time": iso(self.redriven_time),
            "redriven_to": self.redriven_to,
        }


def checked_stored(stored: StoredDeadLetter) -> StoredDeadLetter:
    """Return a dead letter of a sink; raises as `require_type`."""
    is_stored = isinstance(stored, StoredDeadLetter)
    require_type("the dead letter", stored, is_stored, "one that dead_letters() returned")
    return stored


def all_stored(dead_letters: Iterable[StoredDeadLetter]) -> list[StoredDeadLetter]:
    """Return dead letters of a sink; raises as `require_type`."""
    is_list = isinstance(dead_letters, Iterable)
    require_type("dead_letters", dead_letters, is_list, "a list of those of dead_letters()")
    return [checked_stored(each) for each in dead_letters]


def current_dead_letters(entries: Iterable[DeadLetter | Mark]) -> list[StoredDeadLetter]:
    """Return the dead letters of a log of dead letters and marks, in the order of their times.

    An event that is recorded again, after a crash or a reset of its group, is one dead letter. A
    mark holds for the failures before it; the order of the log does not matter.
    """
    dead_letters: dict[str, DeadLetter] = {}
    marks: dict[str, Mark] = {}
    for entry in entries:
        if isinstance(entry, Mark):
            known = marks.get(entry.dead_letter_id)
            if known is None or known.time <= entry.time:
                marks[entry.dead_letter_id] = entry
        elif entry.id not in dead_letters or dead_letters[entry.id].time <= entry.time:
            dead_letters[entry.id] = entry
    stored = []
    for id_, dead_letter in dead_letters.items():
        mark = marks.get(id_)
        if mark is None or mark.time < dead_letter.time:
            stored.append(StoredDeadLetter(dead_letter))
        elif mark.redriven_to is not None:
            stored.append(StoredDeadLetter(dead_letter, mark.time, mark.redriven_to))
    return in_order(stored)


def in_order(stored: Iterable[StoredDeadLetter]) -> list[StoredDeadLetter]:
    """Return dead letters in the order of their times, and of their events if these are equal."""
    return sorted(
        stored, key=lambda each: (each.dead_letter.time, each.dead_letter.sequence_number)
    )


def read_properties(event: EventData) -> dict[str, Any]:
    """Return the application properties of an event, with strings as `str`."""
    properties = event.properties or {}
    return {text_of(name) or "": from_amqp(value) for name, value in properties.items()}


def own_properties(event: EventData) -> dict[str, Any]:
    """Return the application properties of an event, without those of an earlier dead letter."""
    return {
        name: value for name, value in read_properties(event).items() if not name.startswith(PREFIX)
    }


def added_properties(event: EventData) -> dict[str, Any]:
    """Return the properties that a dead letter has added, under their names in the JSON."""
    return {
        name.removeprefix(PREFIX).replace("-", "_"): value
        for name, value in read_properties(event).items()
        if name.startswith(PREFIX)
    }


def amqp_properties(event: EventData) -> dict[str, Any]:
    """Return the AMQP properties that are set, such as `content_type`."""
    properties = event.raw_amqp_message.properties
    values = {name: getattr(properties, name, None) for name in AMQP_PROPERTIES}
    return {name: from_amqp(value) for name, value in values.items() if value is not None}


def body_of(event: EventData) -> bytes:
    """Return the payload; an AMQP value or sequence as its string."""
    body = event.body
    if event.body_type is not AmqpMessageBodyType.DATA:
        return event.body_as_str().encode()
    return body if isinstance(body, bytes) else b"".join(body)  # type: ignore[arg-type]


def encoded_body(body: bytes) -> tuple[str, str]:
    """Return a body as text if it is UTF-8, else in base64, and the name of the encoding."""
    try:
        return body.decode(), "utf-8"
    except UnicodeDecodeError:
        return b64encode(body).decode(), "base64"


def decoded_body(body: str, encoding: str) -> bytes:
    """Return the body that `encoded_body` has encoded.

    Raises:
        ValueError, AttributeError: `encoded_body` does not return these values.
    """
    if encoding == "base64":
        return b64decode(body, validate=True)
    if encoding == "utf-8":
        return body.encode()
    raise ValueError(f"body_encoding is {quoted(encoding)}; expected utf-8 or base64")


def from_amqp(value: Any) -> Any:
    """Return a delivered value: strings of AMQP arrive as bytes, and become strings again."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def to_amqp(value: Any) -> Any:
    """Return a value in the form in which the client sends it.

    Source: azure-eventhub 5.15.1, `_pyamqp/_encode.py`: an int is sent in 32 bits and refused
    beyond, unless its type is named.
    """
    if isinstance(value, int) and not -(2**INT_BITS) <= value < 2**INT_BITS:
        kind = "LONG" if -(2**LONG_BITS) <= value < 2**LONG_BITS else "ULONG"
        return {"TYPE": kind, "VALUE": value}
    return value


def to_plain(value: Any) -> Any:
    """Return a property for JSON; a value of a type that JSON lacks becomes an object."""
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def from_plain(value: Any) -> Any:
    """Return the property that `to_plain` has converted.

    Raises:
        ValueError, TypeError, LookupError: the value is none of those, or AMQP has no such number.
    """
    if isinstance(value, dict):
        [(kind, text)] = value.items()
        kinds: Mapping[str, Callable[[str], Any]] = {"bytes": from_base64, "uuid": UUID}
        return {**kinds, "float": float}[kind](string(text))
    if isinstance(value, int) and not -(2**LONG_BITS) <= value < 2 ** (LONG_BITS + 1):
        raise ValueError(f"a property is {value}; expected a number from -2**63 to 2**64 - 1")
    if value is not None and not isinstance(value, int | float | str):
        kind = type(value).__name__
        raise TypeError(f"a property is of type {kind}; expected a string, number, boolean or null")
    return value


def from_base64(text: str) -> bytes:
    """Return bytes that `to_plain` has encoded."""
    return b64decode(text, validate=True)


def string(value: Any) -> str:
    """Return the value if it is a string.

    Raises:
        TypeError: it is of another type.
    """
    if not isinstance(value, str):
        raise TypeError(f"expected a string, not a {type(value).__name__}")
    return value


def optional(read: Callable[[Any], T], value: Any) -> T | None:
    """Return what `read` makes of a value; None for None."""
    return None if value is None else read(value)


def text_of(value: str | bytes | None) -> str | None:
    """Return a name or key as a string; the client delivers it as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def iso(time: datetime | None) -> str | None:
    """Return a time in ISO 8601; None for None."""
    return None if time is None else time.isoformat()
