"""Durations as people read them."""

from datetime import timedelta


def duration(seconds: float | None) -> str | None:
    """Return a number of seconds as days, hours, minutes and seconds, of which two are shown."""
    if seconds is None:
        return None
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(whole.seconds, 3600)
    parts = [(whole.days, "d"), (hours, "h"), (rest // 60, "m"), (rest % 60, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts = parts[1:]
    return " ".join(f"{count}{unit}" for count, unit in parts[:2])
