"""Checkpoints that a reader expects and a store does not have."""

from collections.abc import Container, Mapping, Sequence
from typing import Literal, get_args

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.records import Scope

Missing = Literal["start", "error"]
"""What becomes of a partition without a checkpoint: it begins at the start position, or is an
error."""

SHOWN, SHOWN_LENGTH = 10, 300
"""At most so many scopes are listed in a message, each with so many characters."""


def checked_missing(name: str, value: object) -> Missing:
    """The value itself.

    Raises:
        ConfigurationError: it is not one of the two; `name` says which setting that was.
    """
    choices: tuple[Missing, ...] = get_args(Missing)
    for choice in choices:
        if value == choice:
            return choice
    raise ConfigurationError(f"{name} is {quoted(value)}; expected 'start' or 'error'")


def without_checkpoints(scope: Scope, held: Sequence[Scope] | None) -> str:
    """Say that a store has no checkpoint of a scope, and which scopes it has.

    Args:
        scope: the one that was read.
        held: those in the store; None where it cannot list them.
    """
    sentence = f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)}"
    if held is None:
        return sentence
    others = [one for one in held if str(one).casefold() != str(scope).casefold()]
    if not others:
        return f"{sentence}, and holds no other hub or consumer group"
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    listed = ", ".join(quoted(str(one), SHOWN_LENGTH) for one in others[:SHOWN])
    return f"{sentence}; it holds {listed}{more}. Is a name misspelt?"


def require_checkpoints(
    scope: Scope, stored: Container[str], found: Mapping[str, PartitionProperties]
) -> None:
    """Refuse partitions without a checkpoint; one that never had an event needs none.

    Args:
        scope: whose checkpoints.
        stored: partitions that have one.
        found: what the partitions that are read hold.

    Raises:
        ConfigurationError: there are such partitions.
    """
    absent = [
        one for one, held in found.items() if one not in stored and held.next_sequence_number > 0
    ]
    if absent:
        raise ConfigurationError(
            f"the store has no checkpoint of {quoted(str(scope), SHOWN_LENGTH)} for partition "
            f"{', '.join(absent)}, and missing='error' is set"
        )
