"""Settings that all stores share, and their validation."""

from dataclasses import dataclass
from inspect import iscoroutinefunction
from math import isfinite
from typing import Literal, TypedDict

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of one store.

    Attributes:
        operation_timeout: time limit of a list or a batch of claims, in seconds.
        write_timeout: time limit of one checkpoint or one release, in seconds.
        keep_unconfirmed: how long, in seconds since the server last confirmed it, an ownership is
            kept while its renewal is unanswered; must be below the client's expiry.
        max_concurrency: claims of one batch that run at once.
        on_stale: whether a stale checkpoint is logged, or raised as `StaleCheckpointError`.
    """

    operation_timeout: float
    write_timeout: float
    keep_unconfirmed: float
    max_concurrency: int
    on_stale: Literal["log", "raise"]

    def __post_init__(self) -> None:
        for name in ("operation_timeout", "write_timeout"):
            value = getattr(self, name)
            require(name, value, is_seconds(value), "seconds, above 0")
        kept, limit, on_stale = self.keep_unconfirmed, self.max_concurrency, self.on_stale
        require("keep_unconfirmed", kept, is_number(kept) and kept >= 0, "seconds, 0 or more")
        require("max_concurrency", limit, is_count(limit), "a whole number, 1 or more")
        require("on_stale", on_stale, on_stale in ("log", "raise"), "'log' or 'raise'")


def is_number(value: object) -> bool:
    """Return whether the value is a finite number; timeouts cannot be anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def is_seconds(value: object) -> bool:
    """Return whether the value is a finite number of seconds above 0."""
    return isinstance(value, int | float) and is_number(value) and value > 0


def is_count(value: object) -> bool:
    """Return whether the value is an integer of at least 1."""
    return isinstance(value, int) and is_number(value) and value >= 1


def is_callback(value: object) -> bool:
    """Return whether the value is None or a callable that is not a coroutine function."""
    return value is None or (callable(value) and not iscoroutinefunction(value))


def kind_of(value: object) -> str:
    """Return the public import path of a value's type."""
    return name_of(type(value))


def name_of(kind: type) -> str:
    """Return the public import path of a type."""
    module = kind.__module__.partition("._")[0]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def require(name: str, value: object, holds: bool, expected: str) -> None:
    """Refuse an invalid setting.

    Raises:
        ConfigurationError: `holds` is false.
    """
    if not holds:
        raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")


class StoreSettings(TypedDict, total=False):
    """Settings as keyword arguments of every store's constructor."""

    operation_timeout: float
    write_timeout: float
    keep_unconfirmed: float
    max_concurrency: int
    on_stale: Literal["log", "raise"]
