"""What rows of the tables hold, whoever wrote them."""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any, TypeVar

from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores import record_format as dialects
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import is_row, owner_of, position_fields

Row = Sequence[Any]
Record = TypeVar("Record", Ownership, Checkpoint)


def listing(
    rows: Iterable[Row], scope: Scope, read: Callable[[Scope, Row], Record | None]
) -> Listing[Record]:
    """The records among the rows; those that cannot be read are skipped."""
    found, skipped = [], []
    for row in rows:
        record = read(scope, row) if is_row(str(row[0]), {}) else None
        if record is None:
            skipped.append(f"the row of {row[0]!r} in {scope} was left out: it cannot be read")
        else:
            found.append(record)
    return Listing(found, skipped=skipped)


def ownership_of(scope: Scope, row: Row) -> Ownership | None:
    """The ownership in a row; None where its time is none."""
    partition_id, owner_id, etag, last_modified_time = row[:4]
    if not (isinstance(last_modified_time, float) and isfinite(last_modified_time)):
        return None
    owner = owner_of({"ownerid": str(owner_id)})
    return Ownership(scope, partition_id, owner, str(etag), last_modified_time)


def checkpoint_of(scope: Scope, row: Row) -> Checkpoint:
    """The checkpoint in a row, without a position where it has none."""
    partition_id, offset, number, version = row
    fields = position_fields(offset, number)
    return dialects.checkpoint_of(scope, partition_id, fields, str(version))


def readable_checkpoint(scope: Scope, row: Row) -> Checkpoint | None:
    """The checkpoint in a row; None if it tells nothing."""
    found = checkpoint_of(scope, row)
    return found if found.is_readable else None
