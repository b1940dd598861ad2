"""Start and end positions in a partition.

One rule decides everything here: a position is the *first event to read*. The Event Hubs
client counts from the last event seen, so a checkpoint at N begins at N + 1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from eventhub_checkpoints._shared.offset_words import (
    END_OF_STREAM,
    START_OF_STREAM,
    Meaning,
    is_taken,
    is_unknown,
    meaning_of,
)
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require_flag
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import MOST_INT64, whole_number

POSITIONS = "'earliest', 'latest', a datetime with a time zone or an EventPosition"


@dataclass(frozen=True, slots=True)
class EventPosition:
    """Position in a partition, made by one of the five constructors below.

    Exactly one of the three fields is set. Equal positions are equal values: "after 99" and
    "100 inclusive" are the same `EventPosition`.

    Attributes:
        sequence_number: of the first event to read.
        offset: opaque string; `"-1"` is the start of the stream and `"@latest"` its end.
        enqueued_time: the first event to read was enqueued then or later; UTC, milliseconds.
        inclusive: whether the event at `offset` itself is read.
    """

    sequence_number: int | None = None
    offset: str | None = None
    enqueued_time: datetime | None = None
    inclusive: bool = True

    def __post_init__(self) -> None:
        require_flag("inclusive", self.inclusive)
        fields = (self.sequence_number, self.offset, self.enqueued_time)
        values = [field for field in fields if field is not None]
        if len(values) != 1 or not (
            is_sequence_number(self.sequence_number)
            or (isinstance(self.offset, str) and self.offset)
            or is_utc(self.enqueued_time)
        ):
            raise ConfigurationError(
                f"EventPosition of {quoted(values)} is not a position; make one with "
                "from_sequence_number, from_offset, from_enqueued_time, from_start_of_stream or "
                "from_end_of_stream"
            )

    @classmethod
    def from_sequence_number(cls, sequence_number: int, inclusive: bool = False) -> Self:
        """Begin after an event, or with `inclusive=True` at it.

        Args:
            sequence_number: of the event; a checkpoint's number is passed as it is.
            inclusive: read that event too. False at N begins at N + 1.

        Raises:
            ConfigurationError: the number is not an int from 0 to 2**63 - 1.
        """
        require_flag("inclusive", inclusive)
        number = whole_number(sequence_number)
        first = -1 if number is None else number + (not inclusive)
        if number is None or number < 0 or first > MOST_INT64:
            raise ConfigurationError(
                f"sequence_number is {quoted(sequence_number)}; expected an int from 0 to 2**63 - 1"
            )
        return cls(sequence_number=first)

    @classmethod
    def from_offset(cls, offset: str, inclusive: bool = False) -> Self:
        """Begin after the event at an offset, or with `inclusive=True` at it.

        Prefer a sequence number where it is known: Kafka has no such offsets, and the JVM
        connector waits for a next event when this one is the last.

        Raises:
            ConfigurationError: the offset is not a string, or empty, or a word that no hub takes.
        """
        if not isinstance(offset, str) or not offset:
            raise ConfigurationError(f"offset is {quoted(offset)}; expected a non-empty string")
        meaning = meaning_of(offset)
        if not is_taken(offset):
            raise ConfigurationError(
                f"offset is {quoted(offset)}, which no event has; {CONSTRUCTORS[meaning]}"
            )
        if meaning is Meaning.START:
            return cls.from_start_of_stream()
        if meaning is Meaning.END:
            return cls.from_end_of_stream()
        return cls(offset=offset, inclusive=inclusive)

    @classmethod
    def from_enqueued_time(cls, enqueued_time: datetime) -> Self:
        """Begin at the first event that was enqueued at this time or later.

        Event Hubs keeps milliseconds, so microseconds are truncated: at most one event too many.

        Raises:
            ConfigurationError: it is not a datetime, has no time zone, or is out of range in UTC.
        """
        if not isinstance(enqueued_time, datetime) or enqueued_time.utcoffset() is None:
            raise ConfigurationError(
                f"enqueued_time is {quoted(enqueued_time)}; expected a datetime with a time zone, "
                "for example datetime(2026, 11, 21, 10, tzinfo=timezone.utc)"
            )
        try:
            moment = enqueued_time.astimezone(UTC)
        except OverflowError:
            raise ConfigurationError(
                f"enqueued_time is {quoted(enqueued_time)}, which is out of range in UTC"
            ) from None
        surplus = timedelta(microseconds=moment.microsecond % 1000)
        return cls(enqueued_time=moment - surplus)

    @classmethod
    def from_start_of_stream(cls) -> Self:
        """Begin at the first event still retained."""
        return cls(offset=START_OF_STREAM)

    @classmethod
    def from_end_of_stream(cls) -> Self:
        """Begin at the next event to be enqueued."""
        return cls(offset=END_OF_STREAM, inclusive=False)

    @property
    def is_start_of_stream(self) -> bool:
        """Return whether this is the first event still retained."""
        return self.offset == START_OF_STREAM

    @property
    def is_end_of_stream(self) -> bool:
        """Return whether this is the next event to be enqueued."""
        return self.offset == END_OF_STREAM

    def __str__(self) -> str:
        if self.sequence_number is not None:
            return f"sequence number {self.sequence_number}"
        if self.enqueued_time is not None:
            return f"time {self.enqueued_time.isoformat()}"
        if self.is_start_of_stream or self.is_end_of_stream:
            return "start of stream" if self.is_start_of_stream else "end of stream"
        return f"{'at' if self.inclusive else 'after'} offset {quoted(self.offset)}"


CONSTRUCTORS: Mapping[Meaning | None, str] = {
    Meaning.START: "use from_start_of_stream",
    Meaning.END: "use from_end_of_stream",
    Meaning.UNKNOWN: "use from_sequence_number",
}
"""What to call instead of `from_offset`."""


def is_sequence_number(value: object) -> bool:
    """Return whether an event can have this sequence number."""
    number = whole_number(value)
    return number is not None and 0 <= number <= MOST_INT64


MOST_DIGITS = 19
"""Of an int64. Python refuses to convert 4,301 digits or more."""


def is_partition_id(key: object) -> bool:
    """Return whether this is a partition id as Event Hubs writes it."""
    return isinstance(key, str) and is_digits(key)


def is_digits(text: str) -> bool:
    """Return whether this is a whole number of at most 19 digits, without a sign."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def signed_number(text: str) -> int | None:
    """Return a whole number of at most 19 digits, with or without a sign; None: it is not one.

    Unlike `int`, this takes neither `1_0` for 10, nor digits of other scripts.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if is_digits(digits) else None


def checked_partitions(
    partition_ids: Iterable[str | int],
    name: str = "partition_ids",
    expected: str = "decimal numbers",
) -> list[str]:
    """Return partition ids as the SDK writes them, in numeric order.

    Args:
        partition_ids: the ids.
        name: where they were named, for errors.
        expected: what may be named there, likewise.

    Raises:
        ConfigurationError: they are not an iterable, it is empty, or one is not a number (the
            connector needs numbers).
    """
    is_list = isinstance(partition_ids, Iterable) and not isinstance(partition_ids, str | bytes)
    partitions = list(partition_ids) if is_list else []
    if not partitions:
        raise ConfigurationError(
            f"{name} is {quoted(partition_ids)}; expected a list of them, such as ['0', '1']"
        )
    texts = {str(partition) for partition in partitions}
    invalid = sorted(text for text in texts if not is_partition_id(text))
    if invalid:
        raise ConfigurationError(f"{name} holds {quoted(invalid[0])}; expected {expected}")
    return sorted(texts, key=int)


def parse_partitions(text: str, name: str) -> list[str]:
    """Return the partition ids in a text, separated by commas; see `checked_partitions`."""
    ids = [partition_id.strip() for partition_id in text.split(",")]
    return checked_partitions(ids, name, "decimal numbers, such as 0,3")


def is_utc(value: object) -> bool:
    """Return whether this is a time in UTC, the only zone in which positions are written."""
    return isinstance(value, datetime) and value.utcoffset() == timedelta(0)


def position_of(value: Any, expected: str = POSITIONS) -> EventPosition:
    """Return the position that a user's value denotes.

    Args:
        value: `"earliest"`, `"latest"`, a datetime with a time zone, or an `EventPosition`.
        expected: description of the valid values, for errors.

    Raises:
        ConfigurationError: it is none of these.
    """
    if isinstance(value, EventPosition):
        return value
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return EventPosition.from_enqueued_time(value)
    if value == "earliest":
        return EventPosition.from_start_of_stream()
    if value == "latest":
        return EventPosition.from_end_of_stream()
    raise ConfigurationError(f"{quoted(value)} is not a position; expected {expected}")


def after(partition: str, checkpoint: Mapping[str, Any]) -> EventPosition:
    """Return the position after a checkpoint; by its offset only if it has no number.

    Raises:
        ConfigurationError: it has neither.
    """
    number, offset = checkpoint.get("sequence_number"), checkpoint.get("offset")
    if number is not None and int(number) >= 0:
        return EventPosition.from_sequence_number(int(number))
    if isinstance(offset, str) and not is_unknown(offset):
        return EventPosition.from_offset(offset)
    raise ConfigurationError(
        f"the checkpoint of partition {partition} has neither a sequence number nor an offset"
    )
