"""Which of the known names was probably meant by one that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.5
"""From 0 to 1: how much of a name must be another's for it to be a typing error."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None where none is alike."""
    names = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), names, 1, ALIKE)
    return names[found[0]] if found else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """The names that are known, and before all others the one that was probably meant."""
    names = list(known)
    meant = nearest(name, names)
    return names if meant is None else [meant, *(each for each in names if each != meant)]
