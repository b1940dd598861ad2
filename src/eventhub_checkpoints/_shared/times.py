"""Times as text: the one grammar of options, command line, page and stored dead letters."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from eventhub_checkpoints._shared.durations import accepted_durations, parse_duration
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
"""Resolution of the times of a hub."""
TIME = "a time in ISO 8601, such as 2026-11-21T10:00 (UTC) or 2026-11-21T10:00:00.250+01:00"
DURATION = accepted_durations(least=0, needs_unit=True)
"""What `before_now` accepts, for errors."""


def parse_time(text: object, name: str = "the time") -> datetime:
    """Parse a time in ISO 8601; one without an offset is UTC.

    Args:
        text: a string; any other type is refused, because it may come from JSON.
        name: what it is, for the error.

    Returns:
        The time in UTC, whatever its offset was.

    Raises:
        ConfigurationError: it is not a time, or it is out of range in UTC.

    Source: Apache Kafka, `kafka-consumer-groups --to-datetime`: UTC without an offset.
    """
    try:
        if not isinstance(text, str):
            raise TypeError
        time = datetime.fromisoformat(text.strip())
        return time.replace(tzinfo=UTC) if time.utcoffset() is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        # Not chained: Python's own message shows the whole string, which may be a secret.
        raise ConfigurationError(f"{name} is {quoted(text)}; expected {TIME}") from None


def before_now(text: str) -> datetime:
    """Return the time that lies a duration before now.

    Raises:
        ConfigurationError: it is not a duration with a unit.

    Source: Apache Kafka, `kafka-consumer-groups --by-duration`.
    """
    return datetime.now(UTC) - timedelta(seconds=parse_duration(text, least=0, needs_unit=True))


def time_or_duration(text: str, name: str = "the time") -> datetime:
    """Return the time that people name, by itself or by a duration before now.

    Args:
        text: the time or the duration.
        name: what it is, for the error.

    Raises:
        ConfigurationError: it is neither.
    """
    for parse in (before_now, parse_time):
        with suppress(ConfigurationError):
            return parse(text)
    raise ConfigurationError(f"{name} is {quoted(text)}; expected {TIME}, or {DURATION}")
