"""Values as people read them."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

SHOWN = 10
"""Names that a list shows."""


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


def counted(count: int, noun: str, *, grouped: bool = False) -> str:
    """Return a number with its noun, whose plural has an `s`; `no` for 0.

    Args:
        count: the number.
        noun: what is counted.
        grouped: whether the number has thousands separators.
    """
    number = f"{count:,}" if grouped else str(count)
    return f"{number if count else 'no'} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """Return a noun whose plural has an `s`, as it stands beside a number."""
    return noun if count == 1 else f"{noun}s"


def partitions(ids: Sequence[object]) -> str:
    """Return a number of partitions in words."""
    return counted(len(ids), "partition")


def some(names: Iterable[str], separator: str = ", ", shown: int = SHOWN) -> str:
    """Return the first names, and the number of those left out."""
    names = list(names)
    rest = len(names) - shown
    return separator.join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def has(text: str, part: str) -> bool:
    """Return whether a text contains another one, in any case."""
    return not part or part.casefold() in text.casefold()


def printable(text: str, keep: str = "") -> str:
    """Escape characters that are invisible, or change the direction of others."""
    return "".join(
        each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text
    )
