"""What the records of other writers mean.

Every SDK writes the same few facts with small differences: keys in another case, no offset, a
word in its place, a sequence number as text. One row that cannot be read harms no other.

Source: run against the newest official stores; `docs/wire-format.md` has the tables.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eventhub_checkpoints._shared.fields import LEAST_INT64, MOST_INT64
from eventhub_checkpoints.records import RELEASED, Checkpoint, Scope

NO_OFFSET = frozenset({"", "no offset", "None"})
"""Texts that stand where no offset was known: .NET 5.11 wrote the first two, Python the third."""
NO_OWNER = frozenset({"", "null"})
"""The second is what the JavaScript store writes for an owner that is null."""

Fields = Mapping[str, str | None]


class StoredPosition(NamedTuple):
    """A position as some writer stored it; at least one of the two is known."""

    offset: str
    sequence_number: int | None


def is_row(partition_id: str, fields: Fields) -> bool:
    """Whether it is a partition's row at all.

    A list also shows what lies deeper, and the folders of a hierarchical namespace.
    """
    return bool(partition_id) and "/" not in partition_id and "hdi_isfolder" not in fields


def owner_of(fields: Fields) -> str:
    """The owner id of an ownership row; a row without one is released."""
    owner_id = field(fields, "ownerid")
    return RELEASED if owner_id in NO_OWNER else owner_id


def position_of(fields: Fields) -> StoredPosition | None:
    """The position of a checkpoint row; None if the row has neither offset nor number."""
    offset = field(fields, "offset")
    position = StoredPosition(
        "" if offset in NO_OFFSET else offset, decimal_int64(field(fields, "sequencenumber"))
    )
    return None if position == StoredPosition("", None) else position


def checkpoint_of(scope: Scope, partition_id: str, fields: Fields, version: str) -> Checkpoint:
    """The checkpoint that a row holds, without a position where it holds none."""
    offset, sequence_number = position_of(fields) or StoredPosition("", None)
    return Checkpoint(scope, partition_id, offset, sequence_number, version)


def position_fields(offset: str | None, sequence_number: int | None) -> Fields:
    """The fields of a backend that keeps a position in columns of their own types."""
    number = None if sequence_number is None else str(sequence_number)
    return {"offset": offset, "sequencenumber": number}


def field(fields: Fields, name: str) -> str:
    """A value by its key, whatever the key's case; `""` if it is not there."""
    for key, value in fields.items():
        if key.lower().replace("_", "") == name:
            return value or ""
    return ""


def decimal_int64(text: str) -> int | None:
    """The number, or None where the text is none."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    number = int(text)
    return number if LEAST_INT64 <= number <= MOST_INT64 else None
