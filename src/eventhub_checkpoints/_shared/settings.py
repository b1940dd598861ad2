"""Settings that all stores share, their validation, and suggestions for misspelt ones."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import Any, Literal, TypedDict

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

LONGEST_TIME = 1e9
"""Seconds, which are 32 years. Beyond some larger number, clocks and timers overflow."""
SHORTEST_TIME = 0.001
"""Seconds; a float clock does not resolve shorter intervals well."""
SECONDS = f"a number of seconds, above 0 and at most {LONGEST_TIME:g}"
SECONDS_OR_ZERO = f"a number of seconds, from 0 to {LONGEST_TIME:g}"

MOST_CONCURRENT = 1000
"""Pools of connections reserve memory for each request that may run at the same time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one store, validated; `StoreSettings` describes them."""

    operation_timeout: float = 30.0
    write_timeout: float = 10.0
    keep_unconfirmed: float = 30.0
    max_concurrency: int = 32
    on_stale: Literal["log", "raise"] = "log"
    unreachable_timeout: float | None = None

    def __post_init__(self) -> None:
        require_seconds("operation_timeout", self.operation_timeout)
        require_seconds("write_timeout", self.write_timeout)
        require_seconds("keep_unconfirmed", self.keep_unconfirmed, or_zero=True)
        if self.unreachable_timeout is not None:
            require_seconds("unreachable_timeout", self.unreachable_timeout)
        limit = self.max_concurrency
        is_limit = is_count(limit) and limit <= MOST_CONCURRENT
        require("max_concurrency", limit, is_limit, f"a whole number, 1 to {MOST_CONCURRENT}")
        require_on_stale(self.on_stale)


def is_number(value: object) -> bool:
    """Return whether the value is a finite number; timeouts cannot be anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def is_seconds(value: object, *, or_zero: bool = False) -> bool:
    """Return whether a timer can wait for so many seconds.

    Args:
        value: of any type.
        or_zero: whether 0 is accepted.
    """
    if not isinstance(value, int | float) or not is_number(value):
        return False
    return 0 < value <= LONGEST_TIME or (or_zero and value == 0)


def is_count(value: object, least: int = 1) -> bool:
    """Return whether the value is an integer of at least `least`."""
    return isinstance(value, int) and is_number(value) and value >= least


def kind_of(value: object) -> str:
    """Return the public import path of a value's type; of a class, `type[PATH]`."""
    return f"type[{name_of(value)}]" if isinstance(value, type) else name_of(type(value))


def name_of(kind: type) -> str:
    """Return the public import path of a type."""
    module = kind.__module__.partition("._")[0]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def require(name: str, value: object, holds: bool, expected: str) -> None:
    """Refuse an invalid setting."""
    if not holds:
        raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")


def require_type(name: str, value: object, is_valid: bool, expected: str) -> None:
    """Refuse an argument of a wrong type.

    Raises:
        ConfigurationError: `is_valid` is false. The message shows the type only, because the value
            may be a connection string, or the body of an event.
    """
    if not is_valid:
        raise ConfigurationError(f"{name} is of type {kind_of(value)}; expected {expected}")


def require_seconds(name: str, value: object, *, or_zero: bool = False) -> None:
    """Refuse a value for which `is_seconds` is false."""
    expected = SECONDS_OR_ZERO if or_zero else SECONDS
    require(name, value, is_seconds(value, or_zero=or_zero), expected)


def require_flag(name: str, value: object) -> None:
    """Refuse anything but a bool: a string such as "false" would be true."""
    require(name, value, isinstance(value, bool), "True or False")


Rule = tuple[Callable[[Any], bool], str]
"""Predicate for a setting, and the expectation that the error message names."""
COUNT: Rule = is_count, "a whole number, 1 or more"
FLAG: Rule = (lambda value: isinstance(value, bool)), "True or False"
TIME: Rule = is_seconds, SECONDS


def require_all(owner: object, rules: Mapping[str, Rule]) -> None:
    """Refuse an object of which an attribute does not hold to its rule, by name.

    Raises:
        ConfigurationError: an attribute does not.
    """
    for name, (holds, expected) in rules.items():
        value = getattr(owner, name)
        require(name, value, holds(value), expected)


def require_on_stale(value: object) -> None:
    """Refuse anything but the two ways to treat a checkpoint that would go back."""
    require("on_stale", value, value in ("log", "raise"), "'log' or 'raise'")


def require_text(name: str, value: object, expected: str) -> None:
    """Refuse anything but a string that is not empty."""
    require(name, value, isinstance(value, str) and value != "", expected)


class StoreSettings(TypedDict, total=False):
    """Settings that the constructor of every store accepts as keyword arguments.

    Attributes:
        operation_timeout: time limit of a list, or of one call of `claim_ownership` however many
            claims it has, in seconds. Default: 30.
        write_timeout: time limit of one checkpoint or one release, in seconds. Default: 10.
        keep_unconfirmed: how long an ownership is kept if its renewals have no response, in seconds
            since the server last confirmed it. Must be less than the client's
            `partition_ownership_expiration_interval`. Default: 30.
        max_concurrency: maximum number of concurrent claims of one batch, at most 1000. Default:
            32.
        on_stale: `"log"` a checkpoint that would go back, or `"raise"` `StaleCheckpointError`.
            Default: `"log"`.
        unreachable_timeout: seconds for which a call tries to connect to a server that refuses the
            connection or whose name cannot be resolved, counted from the first time. Default: 5
            for `create` and `verify`; the other calls have their own time limits only.
    """

    operation_timeout: float
    write_timeout: float
    keep_unconfirmed: float
    max_concurrency: int
    on_stale: Literal["log", "raise"]
    unreachable_timeout: float


LONGEST_OPTION = 40
"""A longer name in a URL's query is part of a key or a password, and is not shown."""
ALIKE = 0.5
"""Minimum similarity, from 0 to 1, at which a name counts as a misspelling of another."""
MISSPELT = 0.85
"""The same for arguments of this package; no argument of a driver scores above 0.8."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; None if none is similar."""
    names = {each.lower(): each for each in known}
    matches = get_close_matches(name.lower(), names, 1, ALIKE)
    return names[matches[0]] if matches else None


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names, starting with the one that was probably meant."""
    names = list(known)
    meant = nearest(name, names)
    return names if meant is None else [meant, *(each for each in names if each != meant)]


def refuse_misspelt(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse misspelled keyword arguments where unknown ones are passed on or ignored.

    Args:
        names: arguments that are not known.
        known: arguments of this package.
        what: the kind of argument for the message, such as `a setting`.

    Raises:
        ConfigurationError: a name is a misspelling of a known one.
    """
    for name in names:
        for meant in get_close_matches(name.lower(), known, 1, MISSPELT):
            raise ConfigurationError(f"{name} is not {what}; did you mean {meant}?")
