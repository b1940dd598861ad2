"""What every store can be told, checked where it is told."""

from dataclasses import dataclass
from inspect import iscoroutinefunction
from math import isfinite
from typing import Literal, TypedDict

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds of one store.

    Attributes:
        operation_timeout: seconds that a list or a batch of claims may take.
        write_timeout: seconds that one checkpoint or one release may take.
        keep_unconfirmed: seconds since the server last confirmed it that an ownership is still
            kept while its renewal has no answer; must be below the client's expiry.
        max_concurrency: claims of one batch that are under way at once.
        on_stale: whether a refused checkpoint is logged, or raised as `StaleCheckpointError`.
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
    """Whether it is a finite number; a clock cannot wait for any other."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


def is_seconds(value: object) -> bool:
    """Whether it is a time that can be waited for, above 0."""
    return isinstance(value, int | float) and is_number(value) and value > 0


def is_count(value: object) -> bool:
    """Whether it is a whole number, 1 or more."""
    return isinstance(value, int) and is_number(value) and value >= 1


def is_callback(value: object) -> bool:
    """Whether it is None, or a function, or the like, that nobody has to wait for."""
    return value is None or (callable(value) and not iscoroutinefunction(value))


def kind_of(value: object) -> str:
    """The type of a value as its users import it."""
    return name_of(type(value))


def name_of(kind: type) -> str:
    """A type as its users import it."""
    module = kind.__module__.partition("._")[0]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def require(name: str, value: object, holds: bool, expected: str) -> None:
    """Refuse a setting that cannot work.

    Raises:
        ConfigurationError: it does not hold.
    """
    if not holds:
        raise ConfigurationError(f"{name} is {quoted(value)}; expected {expected}")


class StoreSettings(TypedDict, total=False):
    """The settings as keyword arguments of every store's constructor."""

    operation_timeout: float
    write_timeout: float
    keep_unconfirmed: float
    max_concurrency: int
    on_stale: Literal["log", "raise"]
