"""Responses of azure-storage-blob: listed blobs as records, errors, etags."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import MissingDriverError, StoreUnavailableError
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.blob.protocol import Verdict, bare_etag, verdict
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import checkpoint_of, is_row, owner_of
from eventhub_checkpoints.stores.unreachable import innermost, why_unreached

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
    """Return the rows among the blobs whose names begin with `start`; skip foreign blobs."""
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
    """Return the ownership that a listed blob holds."""
    return Ownership(
        scope,
        partition_id,
        owner_of(blob.metadata or {}),
        bare_etag(blob.etag),
        blob.last_modified.timestamp(),
    )


def checkpoint_row(scope: Scope, partition_id: str, blob: BlobProperties) -> Checkpoint:
    """Return the checkpoint that a blob holds, without a position if it has none."""
    return checkpoint_of(scope, partition_id, blob.metadata or {}, bare_etag(blob.etag))


def readable_checkpoint(scope: Scope, partition_id: str, blob: BlobProperties) -> Checkpoint | None:
    """Return the checkpoint that a listed blob holds; None if it has no position."""
    row = checkpoint_row(scope, partition_id, blob)
    return row if row.is_readable else None


def expected(error: HttpResponseError) -> Verdict:
    """Return the verdict for an expected failure of a conditional write; raise any other."""
    found = verdict(error.status_code, error_code(error))
    if found is Verdict.FAILED:
        raise error
    return found


def new_etag(answer: Mapping[str, Any]) -> str:
    """Return the etag of a confirmed write; without one, the answer is not from the service."""
    etag = answer.get("etag")
    if not etag:
        raise StoreUnavailableError("a write was answered without an etag; is a proxy in the way?")
    return bare_etag(str(etag))


def error_code(error: HttpResponseError) -> str:
    """Return the service's error code; `""` if there is none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def operation_of(error: HttpResponseError) -> str:
    """Return the operation of the request that was refused."""
    request = cast("Any", error.response).request
    if request.method == "GET":
        return "list"
    if request.method == "HEAD":
        return "read"
    if request.method == "DELETE":
        return "delete"
    if "restype=container" in request.url:
        return "create the container"
    return "write" if "comp=metadata" in request.url else "create"


def unreached(error: AzureError | OSError) -> str:
    """Return the cause of a missing response, without the request that the driver repeats."""
    cause = innermost(error)
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    said = masked(str(cause)) or "no answer"
    through = "through a proxy, " if "proxy" in str(error).lower() else ""
    reason = why_unreached(error) or f"the connection failed: {said} ({type(cause).__name__})"
    return through + reason


def refused_credential(error: ClientAuthenticationError) -> str:
    """Return the message for a request that got no token or could not be signed."""
    if type(error).__name__ == "AzureSigningError":
        return "the account key is not in base64; copy it again from the account's access keys"
    return f"{masked(str(error))} ({type(error).__name__})"


def may_be_absent(error: HttpResponseError) -> bool:
    """Return whether this server answers "condition not met" for a missing blob.

    Azure answers 404; Azurite 3.35 answers 412, and is recognised by its `Server` header.
    """
    headers = cast("Any", error.response).headers
    return str(headers.get("Server", "")).startswith("Azurite")
