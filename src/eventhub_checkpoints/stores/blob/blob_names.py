"""Names of blobs: one for each ownership and each checkpoint.

Source: the layout that every official SDK shares, `docs/wire-format.md`.
"""

from typing import Literal

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError, InvalidRecordError
from eventhub_checkpoints.records import Scope

Kind = Literal["ownership", "checkpoint"]
NameCase = Literal["lower", "as-typed"]
KINDS: tuple[Kind, ...] = ("ownership", "checkpoint")

LONGEST_NAME = 1024
"""Characters in a blob's name. Source: Azure Storage, "Naming and Referencing Containers"."""


def checked_name_case(name_case: str) -> NameCase:
    """One of the two ways to spell a scope.

    Raises:
        ConfigurationError: it is neither.
    """
    if name_case == "lower":
        return "lower"
    if name_case == "as-typed":
        return "as-typed"
    raise ConfigurationError(f"name_case is {quoted(name_case)}; expected 'lower' or 'as-typed'")


def prefix(scope: Scope, kind: Kind, name_case: NameCase) -> str:
    """What the names of a scope's blobs of one kind begin with."""
    spelled = scope.folded if name_case == "lower" else scope
    return f"{spelled}/{kind}/"


def scope_of(beginning: str) -> Scope | None:
    """The scope of the blobs whose names begin so; None where it is no scope's `a/b/c/`."""
    try:
        return Scope.checked(*beginning.removesuffix("/").split("/"))
    except (InvalidRecordError, TypeError):
        return None


def blob_name(scope: Scope, kind: Kind, partition_id: str, name_case: NameCase) -> str:
    """The name of one partition's blob.

    Raises:
        InvalidRecordError: the whole is longer than the service allows.
    """
    name = prefix(scope, kind, name_case) + partition_id
    if len(name) > LONGEST_NAME:
        raise InvalidRecordError(
            "partition_id",
            partition_id,
            f"a blob name of at most {LONGEST_NAME} characters, not {len(name)}",
        )
    return name
