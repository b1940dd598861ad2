"""Case in which the names of a group are stored, by services that compare names with their case."""

from typing import Literal, cast

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope

NameCase = Literal["lower", "as-typed"]


def checked_name_case(name_case: str) -> NameCase:
    """Return the name case if it is valid.

    Raises:
        ConfigurationError: it is not a `NameCase`.
    """
    if name_case not in ("lower", "as-typed"):
        raise ConfigurationError(
            f"name_case is {quoted(name_case)}; expected 'lower' or 'as-typed'"
        )
    return cast("NameCase", name_case)


def spelled(scope: Scope, name_case: NameCase) -> Scope:
    """Return the scope as its names are stored."""
    return scope.folded if name_case == "lower" else scope
