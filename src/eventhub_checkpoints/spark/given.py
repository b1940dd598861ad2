"""What users give to more than one part of this layer, checked."""

from collections.abc import Sequence
from inspect import iscoroutinefunction

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope


def require_kind(name: str, given: object, holds: bool, expected: str) -> None:
    """Refuse an argument of another kind.

    Raises:
        ConfigurationError: it does not hold. Only its type is shown, for a connection string that
            was put here must not be.
    """
    if not holds:
        raise ConfigurationError(f"{name} is of type {type(given).__name__}; expected {expected}")


def checked_scope(scope: object) -> Scope:
    """The scope itself; raises as `require_kind`."""
    require_kind("scope", scope, isinstance(scope, Scope), "a Scope")
    assert isinstance(scope, Scope)
    return scope


def require_hub_name(name: object) -> None:
    """Refuse what cannot be a hub's name; raises as `require_kind`."""
    is_name = isinstance(name, str) and name != ""
    require_kind("eventhub_name", name, is_name, "the hub's name, which is not empty")


def column_names(frame: object) -> Sequence[str]:
    """The columns of a DataFrame, which is of one class in Spark and of another in Connect.

    Raises:
        ConfigurationError: it is no DataFrame.
    """
    names = getattr(frame, "columns", None)
    require_kind("frame", frame, isinstance(names, list), "a DataFrame")
    return list(names or ())


def answers_at_once(given: object, method: str) -> bool:
    """Whether it has a method of the synchronous kind: a store or client of aio has another."""
    found = getattr(given, method, None)
    return callable(found) and not iscoroutinefunction(found)
