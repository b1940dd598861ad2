"""Times as text: the one grammar of options, command line, page and stored dead letters."""

from datetime import UTC, datetime, timedelta

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
"""Resolution of the times of a hub."""
TIME = "a time in ISO 8601, such as 2026-11-21T10:00 (UTC) or 2026-11-21T10:00:00.250+01:00"


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
