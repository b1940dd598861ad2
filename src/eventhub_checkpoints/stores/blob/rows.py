"""What listed blobs hold."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.blob.protocol import bare_etag
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import checkpoint_of, is_row, owner_of

try:
    from azure.storage.blob import BlobProperties
except ImportError as error:
    raise MissingDriverError.of_extra("the Blob store", "blob") from error

Row = TypeVar("Row", Ownership, Checkpoint)


def rows_of(
    blobs: Iterable[BlobProperties],
    start: str,
    server_now: float | None,
    read: Callable[[str, BlobProperties], Row | None],
) -> Listing[Row]:
    """The rows among the blobs whose names begin with `start`; foreign ones are skipped."""
    rows: list[Row] = []
    skipped: list[str] = []
    for blob in blobs:
        partition_id = str(blob.name)[len(start) :]
        row = read(partition_id, blob) if is_row(partition_id, blob.metadata or {}) else None
        if row is None:
            skipped.append(f"blob {blob.name!r} was left out: it is no record that can be read")
        else:
            rows.append(row)
    return Listing(rows, server_now, skipped)


def ownership_row(scope: Scope, partition_id: str, blob: BlobProperties) -> Ownership:
    """The ownership that a listed blob holds."""
    return Ownership(
        scope,
        partition_id,
        owner_of(blob.metadata or {}),
        bare_etag(blob.etag),
        blob.last_modified.timestamp(),
    )


def checkpoint_row(scope: Scope, partition_id: str, blob: BlobProperties) -> Checkpoint:
    """The checkpoint that a blob holds, without a position where it holds none."""
    return checkpoint_of(scope, partition_id, blob.metadata or {}, bare_etag(blob.etag))


def readable_checkpoint(scope: Scope, partition_id: str, blob: BlobProperties) -> Checkpoint | None:
    """The checkpoint that a listed blob holds; None if it tells nothing."""
    row = checkpoint_row(scope, partition_id, blob)
    return row if row.is_readable else None
