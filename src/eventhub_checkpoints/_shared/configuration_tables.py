"""Validation of configuration tables: known keys, and the values that each accepts.

Everything else raises `ConfigurationError`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import nearest_first
from eventhub_checkpoints.errors import ConfigurationError

Check = Callable[[str, object], Any]
"""Takes a path and its value; returns the converted value or raises ConfigurationError."""
Keys = Mapping[str, Check]


def checked_table(path: str, value: object, keys: Keys) -> dict[str, Any]:
    """Return a table's checked values by key; absent keys are left out."""
    if not isinstance(value, Mapping):
        raise unfit(path, value, f"a table with {', '.join(keys)}")
    check_names(path, value, keys)
    return {
        name: keys[name](joined(path, name), item)
        for name, item in value.items()
        if item is not None and item != ""
    }


def check_names(path: str, table: Iterable[object], known: Iterable[str]) -> None:
    """Refuse unknown keys."""
    names = list(known)
    for name in table:
        if name not in names:
            listed = ", ".join(nearest_first(str(name), names))
            raise ConfigurationError(
                f"{joined(path, name)} is not a setting; expected one of {listed}"
            )


def joined(path: str, name: object) -> str:
    """Return the full path of a key, for messages."""
    text = str(name)
    last = quoted(text) if holds_secret(text) else text
    return f"{path}.{last}" if path else last


def unfit(path: str, value: object, expected: str) -> ConfigurationError:
    """Return the error for an invalid value; it names the type and does not show the value."""
    return ConfigurationError(f"{path} is of type {type(value).__name__}; expected {expected}")


def missing(path: str, expected: str) -> ConfigurationError:
    """Return the error for a required value that is missing."""
    return ConfigurationError(f"{path} is missing; expected {expected}")


def anything(path: str, value: object) -> object:
    """Return the value unchecked."""
    return value


def text(path: str, value: object) -> str:
    """Return the value if it is a string; it may be a secret, so it is never shown."""
    if not isinstance(value, str):
        raise unfit(path, value, "a string")
    return value


def flag(path: str, value: object) -> bool:
    """Return the value if it is a bool; strings such as "true" are refused."""
    if not isinstance(value, bool):
        raise unfit(path, value, "true or false, without quotes")
    return value


def count(path: str, value: object) -> int:
    """Return the value if it is an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise unfit(path, value, "a whole number, 1 or more")
    if value < 1:
        raise ConfigurationError(f"{path} is {value}; expected a whole number, 1 or more")
    return value


def matching(pattern: str, expected: str) -> Check:
    """Return a check for strings that match a pattern."""

    def check(path: str, value: object) -> str:
        if not isinstance(value, str):
            raise unfit(path, value, expected)
        if not re.fullmatch(pattern, value):
            raise ConfigurationError(f"{path} cannot be used as it is; expected {expected}")
        return value

    return check


def duration(shortest: float, longest: float) -> Check:
    """Return a check for durations in a range, which converts them to seconds.

    It refuses a plain number, because HOCON reads one as milliseconds and most readers as seconds.
    """
    return lambda path, value: parse_duration(
        value, path, least=shortest, most=longest, needs_unit=True
    )


def table_of(keys: Keys) -> Check:
    """Return a check for a nested table."""
    return lambda path, value: checked_table(path, value, keys)


def any_table(path: str, value: object) -> dict[str, Any]:
    """Return the value if it is a table; its keys are checked elsewhere."""
    if not isinstance(value, Mapping):
        raise unfit(path, value, "a table")
    return dict(value)
