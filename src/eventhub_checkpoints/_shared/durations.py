"""Durations as text: the one grammar of options, configuration, command line and page."""

import re
from contextlib import suppress
from datetime import datetime
from operator import mul
from typing import Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import LONGEST_TIME, SHORTEST_TIME
from eventhub_checkpoints.errors import ConfigurationError

UNITS = {
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
"""Seconds in one of each unit."""
WITH_UNIT = re.compile(r"(?ai)(\d+(?:\.\d+)?)\s*([a-z]+)")
ISO_8601 = re.compile(
    r"(?ai)P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
"""Without years and months, which have no fixed length."""
OF_ISO_8601 = (604_800.0, 86_400.0, 3600.0, 60.0, 1.0)
"""Seconds in one of each group of `ISO_8601`."""
ANY_DAY = datetime(2000, 1, 1)


def parse_duration(
    value: object,
    name: str = "the duration",
    *,
    least: float = SHORTEST_TIME,
    most: float = LONGEST_TIME,
    needs_unit: bool = False,
) -> float:
    """Parse a duration, and return its seconds.

    Args:
        value: a number with a unit, such as `90s` or `1.5 hours`; ISO 8601 without years and
            months, such as `P1DT2H`; a number of seconds, as text or as it is; or a `timedelta`.
        name: what it is, for the error.
        least: the shortest duration that is accepted, in seconds.
        most: the longest one.
        needs_unit: refuse a plain number, where other programs read milliseconds.

    Raises:
        ConfigurationError: it is not a duration, or out of range.
    """
    seconds = seconds_of(value, needs_unit=needs_unit)
    if seconds is None or not least <= seconds <= most:
        # What is neither text nor a number may hold anything.
        is_shown = isinstance(value, str | int | float)
        shown = quoted(value) if is_shown else f"of type {type(value).__name__}"
        accepted = accepted_durations(least=least, most=most, needs_unit=needs_unit)
        raise ConfigurationError(f"{name} is {shown}; expected {accepted}")
    # A thousand times a thousandth is not 1 in binary fractions.
    return round(seconds, 9)


def accepted_durations(
    *, least: float = SHORTEST_TIME, most: float = LONGEST_TIME, needs_unit: bool = False
) -> str:
    """Return the spellings of a duration that are accepted, for errors; see `parse_duration`."""
    kind = "a duration with its unit," if needs_unit else "seconds, or a duration"
    return f"{kind} such as 30s, 0.5m or PT30S, from {least:g}s to {most:g}s"


def seconds_of(value: Any, *, needs_unit: bool) -> float | None:
    """Return a duration in seconds, of any length; None if the value is not one."""
    if isinstance(value, str):
        text = value.strip()
        if parts := ISO_8601.fullmatch(text):
            numbers = (float(part or 0) for part in parts.groups())
            total: float = sum(map(mul, numbers, OF_ISO_8601))
            return total
        if (parts := WITH_UNIT.fullmatch(text)) and parts[2].lower() in UNITS:
            return float(parts[1]) * UNITS[parts[2].lower()]
    elif not isinstance(value, int | float):
        # A timedelta, or dateutil's relativedelta, which pyhocon creates for a duration.
        with suppress(TypeError, AttributeError, OverflowError):
            return float((ANY_DAY + value - ANY_DAY).total_seconds())
        return None
    if not needs_unit and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return float(value)
    return None
