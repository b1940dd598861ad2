"""Parsing of records as each SDK writes them.

The SDKs write the same fields with small differences: keys in another case, no offset, a
placeholder instead of one, a sequence number as a string. A row that cannot be read does not affect
any other.

Source: run against the newest official stores; `docs/reference/wire-format.md` has the tables.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.records import (
    LEAST_INT64,
    MOST_INT64,
    RELEASED,
    Checkpoint,
    Scope,
    stored_offset,
)

NO_OWNER = frozenset({"", "null"})
"""The second is what the JavaScript store writes for a null owner."""

Fields = Mapping[str, str | None]


def is_row(partition_id: str, fields: Fields) -> bool:
    """Return whether the name and fields are those of a partition's row.

    A list also contains deeper levels, and the folders of a hierarchical namespace.
    """
    return bool(partition_id) and "/" not in partition_id and "hdi_isfolder" not in fields


def stored_scope(names: Sequence[str]) -> Scope | None:
    """Return the scope of the names in a key; None if they are not those of a scope."""
    try:
        return Scope.checked(*names)
    except (InvalidRecordError, TypeError):
        return None


def owner_of(fields: Fields) -> str:
    """Return the owner id of an ownership row; a row without one is released."""
    owner_id = field(fields, "ownerid")
    return RELEASED if owner_id in NO_OWNER else owner_id


def checkpoint_of(
    scope: Scope,
    partition_id: str,
    fields: Fields,
    version: str,
    last_modified_time: float | None = None,
) -> Checkpoint:
    """Return the checkpoint that a row holds, without a position if it has none."""
    offset, number = field(fields, "offset"), decimal_int64(field(fields, "sequencenumber"))
    return checkpoint_of_columns(scope, partition_id, offset, number, version, last_modified_time)


def checkpoint_of_columns(
    scope: Scope,
    partition_id: str,
    offset: Any,
    sequence_number: Any,
    version: str,
    last_modified_time: float | None = None,
) -> Checkpoint:
    """Return the checkpoint of a backend that stores a position in typed columns."""
    # SQLite stores a value of any type. An offset that is a number would be taken for a sequence
    # number by the client.
    if type(sequence_number) is not int:
        sequence_number = decimal_int64(str(sequence_number))
    return Checkpoint(
        scope,
        partition_id,
        stored_offset(offset),
        sequence_number,
        version,
        last_modified_time,
    )


def field(fields: Fields, name: str) -> str:
    """Return a value by its key, regardless of case and underscores; `""` if it is missing."""
    if name in fields:
        return fields[name] or ""
    for key, value in fields.items():
        if key.lower().replace("_", "") == name:
            return value or ""
    return ""


def decimal_int64(text: str) -> int | None:
    """Return the number; None if the string is not a decimal int64."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    number = int(text)
    return number if LEAST_INT64 <= number <= MOST_INT64 else None
