"""Validation of the fields of a record."""

import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, TypeVar, cast

from eventhub_checkpoints._shared.secrets import holds_secret
from eventhub_checkpoints.errors import InvalidRecordError

Row = TypeVar("Row", bound=Mapping[str, Any])

LEAST_INT64, MOST_INT64 = -(2**63), 2**63 - 1
DECIMAL = re.compile("-?[0-9]{1,19}")


def checked_row(row: Any) -> Mapping[str, Any]:
    """Return a record from the SDK if it is a dict.

    Raises:
        InvalidRecordError: it is not a dict; the field of the error is `record`.
    """
    if not isinstance(row, Mapping):
        raise InvalidRecordError("record", row, "a dict, as the client makes them")
    return cast("Mapping[str, Any]", row)


def checked_rows(rows: Iterable[Row]) -> Iterable[Row]:
    """Return the ownerships that the SDK proposes.

    Raises:
        InvalidRecordError: they are not an iterable of rows; the error's field is `ownership_list`.
    """
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | str | bytes):
        raise InvalidRecordError("ownership_list", rows, "a list of dicts, as the client makes it")
    return rows


def checked_name(field: str, value: Any) -> str:
    """Return a name or id if it can be part of a key.

    Raises:
        InvalidRecordError: it is not a string, is empty, `.` or `..`, or holds a slash or
            backslash, a control character or a secret.
    """
    if not isinstance(value, str) or not value:
        is_number = field == "partition_id" and isinstance(value, int)
        example = f", such as '{value:d}'" if is_number else ""
        raise InvalidRecordError(field, value, f"a text that is not empty{example}")
    if not {"/", "\\"}.isdisjoint(value) or not value.isprintable():
        raise InvalidRecordError(field, value, "a text without slashes and control characters")
    if not value.isdecimal() and holds_secret(value):
        raise InvalidRecordError(field, value, "a name, not a connection string, key or token")
    if value in {".", ".."}:
        raise InvalidRecordError(field, value, "a name, not a step in a path")
    return value


def checked_owner_id(value: Any) -> str:
    """Return an owner id; None and `""` mean no owner.

    Raises:
        InvalidRecordError: it is not a printable string.
    """
    if value is None:
        return ""
    if not isinstance(value, str) or (value and not value.isprintable()):
        raise InvalidRecordError("owner_id", value, "a printable text, or '' to release")
    return value


def checked_etag(value: Any) -> str | None:
    """Return the etag that the stored row must carry; None and `""` mean no etag.

    Raises:
        InvalidRecordError: it is not a string.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRecordError("etag", value, "a text, or None where no row is stored")
    return value or None


def checked_offset(value: Any, sequence_number: int) -> str:
    """Return an offset as it is stored: a string unchanged, `""` if unknown.

    An unknown offset is None, the `SequenceOffset` of a listed checkpoint, or the same number as
    a plain int, as after a JSON round trip. Any other int is refused: it may be an offset that
    was meant as a string, and would be lost if it were dropped.

    Raises:
        InvalidRecordError: it is none of these.
    """
    if value is None:
        return ""
    number = whole_number(value)
    if number is not None:
        is_placeholder = isinstance(value, int) and type(value) is not int
        if is_placeholder or number == sequence_number:
            return ""
        raise InvalidRecordError(
            "offset", value, f"a string such as '{number}', or None where it is unknown"
        )
    if not isinstance(value, str) or (value and not value.isprintable()):
        raise InvalidRecordError("offset", value, "a printable string, or None where it is unknown")
    return value


def checked_sequence_number(value: Any) -> int:
    """Return a sequence number that every reader of the record can parse.

    Raises:
        InvalidRecordError: it is not a decimal int64.
    """
    number = whole_number(value)
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        number = int(value)
    if number is None or not LEAST_INT64 <= number <= MOST_INT64:
        raise InvalidRecordError("sequence_number", value, "a decimal int64")
    return number


def whole_number(value: object) -> int | None:
    """Return an integer, including numpy integers and subclasses of int, as a plain int; else None.

    A bool is not accepted as a number.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        return None
