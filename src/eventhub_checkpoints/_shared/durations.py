"""Durations as configuration files spell them: `5s`, `5000ms`, `1 minute`.

Source: Typesafe Config, HOCON.md, "Duration format", of which these are the units that matter here.
"""

import re
from datetime import datetime
from typing import Any

DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
SECONDS = {
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
"""Seconds in one of each unit."""
ANY_DAY = datetime(2000, 1, 1)


def seconds_of(value: Any) -> float | None:
    """The duration in seconds; None where the value is none.

    A number without a unit is none: HOCON takes it for milliseconds, most readers for seconds.
    """
    if isinstance(value, str):
        return seconds_of_text(value)
    # A timedelta, or the relativedelta of dateutil: what pyhocon makes of a duration.
    try:
        return float((ANY_DAY + value - ANY_DAY).total_seconds())
    except (TypeError, AttributeError, OverflowError):
        return None


def seconds_of_text(text: str) -> float | None:
    """The duration that a text spells."""
    found = DURATION.fullmatch(text)
    if found is None or found[2] not in SECONDS:
        return None
    return round(float(found[1]) * SECONDS[found[2]], 9)
