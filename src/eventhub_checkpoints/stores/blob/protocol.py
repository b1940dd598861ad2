"""Names, metadata and status codes of blobs as in every official SDK, and what they mean."""

from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import lru_cache
from typing import Literal, TypeVar, cast
from urllib.parse import unquote

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.azure_storage import errors
from eventhub_checkpoints.stores.azure_storage.messages import Refusal
from eventhub_checkpoints.stores.backends import BLOB
from eventhub_checkpoints.stores.blob.rest import Blob
from eventhub_checkpoints.stores.hook_results import Listing, OfficialFault
from eventhub_checkpoints.stores.record_format import (
    Fields,
    checkpoint_of,
    decimal_int64,
    is_row,
    owner_of,
)

Row = TypeVar("Row", Ownership, Checkpoint)
Kind = Literal["ownership", "checkpoint"]
NameCase = Literal["lower", "as-typed"]
KINDS: tuple[Kind, ...] = ("ownership", "checkpoint")

LONGEST_NAME = 1024
"""Maximum length of a blob name. Source: Azure Storage, "Naming and Referencing Containers"."""


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


def prefix(scope: Scope, kind: Kind, name_case: NameCase) -> str:
    """Return the name prefix of a scope's blobs of one kind."""
    spelled = scope.folded if name_case == "lower" else scope
    return f"{spelled}/{kind}/"


def scope_of(beginning: str) -> Scope | None:
    """Return the scope of a blob name prefix; None if it is not of the form `a/b/c/`."""
    try:
        return Scope.checked(*beginning.removesuffix("/").split("/"))
    except (InvalidRecordError, TypeError):
        return None


# A store uses few names, and each many times.
@lru_cache(maxsize=4096)
def blob_name(scope: Scope, kind: Kind, partition_id: str, name_case: NameCase) -> str:
    """Return the name of one partition's blob.

    Raises:
        InvalidRecordError: the name is longer than the service allows.
    """
    name = prefix(scope, kind, name_case) + partition_id
    if len(name) > LONGEST_NAME:
        raise InvalidRecordError(
            "partition_id",
            partition_id,
            f"a blob name of at most {LONGEST_NAME} characters, not {len(name)}",
        )
    return name


DEFAULT_API_VERSION = "2019-07-07"
"""Sent by the official Python stores. Source: azure-eventhub-checkpointstoreblob 1.2.0."""

RIGHTS = {
    "list": "List on the container",
    "read": "Read on its blobs",
    "create": "Create or Write on its blobs",
    "write": "Write on its blobs",
    "delete": "Delete on its blobs",
    "create the container": "Create on containers, which no SAS of a container has",
}
TITLE = BLOB.services[0].title
ROLE = "the role 'Storage Blob Data Contributor' has all that is needed"


class Verdict(Enum):
    """What became of a write."""

    DONE = auto()
    LOST = auto()
    ABSENT = auto()
    BLOCKED = auto()
    FAILED = auto()


def verdict(answer: str | Refusal) -> Verdict:
    """Return what became of a write, which answers with the new etag if it was carried out.

    The status alone is ambiguous: 404 may be a missing container, 409 a container that is being
    deleted, 412 a leased blob. A blob that is leased or immutable is blocked: nobody can write it.
    """
    if isinstance(answer, str):
        return Verdict.DONE
    status, code = answer.status, answer.code
    if (status, code) in {(409, "BlobAlreadyExists"), (412, "ConditionNotMet")}:
        return Verdict.LOST
    if (status, code) == (404, "BlobNotFound"):
        return Verdict.ABSENT
    if status in {409, 412} and not code.startswith("Container"):
        return Verdict.BLOCKED
    return Verdict.FAILED


def is_absent(refusal: Refusal) -> bool:
    """Return whether Get Blob Properties found no blob in an existing container.

    A response without a body may have no error code; for a missing container it has one.
    """
    return refusal.status == 404 and refusal.code in {"BlobNotFound", ""}


def may_be_absent(refusal: Refusal) -> bool:
    """Return whether this server answers "condition not met" for a missing blob.

    Azure answers 404; Azurite 3.35 answers 412, and is recognised by its `Server` header.
    """
    is_azurite = refusal.headers.get("Server", "").startswith("Azurite")
    return is_azurite and verdict(refusal) is Verdict.LOST


MISSING_BLOB = Refusal("write", 404, "BlobNotFound")
"""What Azure answers if metadata is set of a blob that does not exist."""


def ownership_metadata(owner_id: str) -> dict[str, str]:
    """Return an ownership as metadata; `owner_id` is `""` for a released partition."""
    return {"ownerid": header_text("owner_id", owner_id)}


def checkpoint_metadata(checkpoint: Checkpoint) -> dict[str, str]:
    """Return a checkpoint as metadata: always both keys, an unknown offset as `""`."""
    return {
        "offset": header_text("offset", checkpoint.offset),
        "sequencenumber": str(checkpoint.sequence_number),
    }


def header_text(field: str, value: str) -> str:
    """Return the value if it can be sent unchanged as an HTTP header.

    Raises:
        InvalidRecordError: it is not ASCII, or begins or ends with a space.
    """
    if not value.isascii() or value != value.strip():
        raise InvalidRecordError(field, value, "ASCII without spaces at its ends")
    return value


def bare_etag(etag: str) -> str:
    """Return the etag without quotes: a list returns it bare, a write quoted."""
    return etag.strip('"')


def described(address: str) -> str:
    """Return the container and its account, for messages.

    Args:
        address: the container's URL, without a SAS.
    """
    account, _, name = address.rpartition("/")
    return f"container {unquote(name)!r} of {account}"


def failure(refusal: Refusal, address: str) -> StoreError:
    """Return the error for a request that was not carried out.

    Args:
        refusal: the response; its operation is a key of `RIGHTS`.
        address: the container's URL, without a SAS.
    """
    where, code, operation = described(address), refusal.code, refusal.operation
    if code == "ContainerBeingDeleted" and operation == "create the container":
        return StoreUnavailableError(
            f"{where} is being deleted ({refusal.status} {code}), which takes half a minute or "
            "longer: wait until then, or name another container"
        )
    if code in {"ContainerNotFound", "ContainerBeingDeleted"}:
        return StoreNotReadyError(
            f"{where} does not exist ({refusal.status} {code}): create it with store.create(), "
            "create_container=True or create = true in a configuration"
        )
    forbidden = {
        **FORBIDDEN,
        "AuthorizationPermissionMismatch": f"the credential lacks {RIGHTS[operation]}; {ROLE}",
        "UnauthorizedBlobOverwrite": f"the credential lacks {RIGHTS['write']}; {ROLE}",
    }
    return errors.failure(refusal, where, TITLE, forbidden)


OF_OTHER_SERVICE = "the SAS is not for blobs and containers; make one for the container"
FORBIDDEN = {
    "RequestForbiddenByContainerEncryptionPolicy": "the container accepts only blobs of its own "
    "encryption scope, and the SAS or the request names another (ses). The credential's rights "
    "are not the reason",
    "AuthorizationResourceTypeMismatch": OF_OTHER_SERVICE,
    "AuthorizationServiceMismatch": OF_OTHER_SERVICE,
}
"""What more codes of status 403 mean. Source: Azure Storage, "Blob Storage error codes"."""


def listing(
    blobs: Iterable[Blob],
    start: str,
    server_now: float | None,
    read: Callable[[str, Blob], Row],
) -> Listing[Row]:
    """Return the rows among the blobs whose names begin with `start`; skip foreign blobs."""
    rows: list[Row] = []
    skipped: list[str] = []
    faults: list[OfficialFault] = []
    for blob in blobs:
        partition_id = str(blob.name)[len(start) :]
        row = read(partition_id, blob) if is_row(partition_id, blob.metadata) else None
        if row is None or (isinstance(row, Checkpoint) and not row.is_readable):
            skipped.append(f"blob {blob.name!r} was left out: it is not a readable record")
            continue
        rows.append(row)
        if reason := official_fault(blob.metadata, is_checkpoint=isinstance(row, Checkpoint)):
            faults.append(OfficialFault(partition_id, reason))
    return Listing(rows, server_now, skipped, faults)


def official_fault(fields: Fields, *, is_checkpoint: bool) -> str | None:
    """Explain why the official Python store cannot read a row; None if it can.

    Its list then fails, so that no partition of the group is started. That of JavaScript fails
    likewise. A checkpoint that has no offset at all is left to the rule about offsets: Java writes
    such rows.

    Source: azure-eventhub-checkpointstoreblob 1.2.0, `_blobstoragecs.py`, `list_ownership` and
    `list_checkpoints`; run, with the stores of the other languages: `docs/wire-format.md`.
    """
    for key in ("offset", "sequencenumber") if is_checkpoint else ("ownerid",):
        if key in fields:
            continue
        if spelled := next((name for name in fields if name.lower() == key), None):
            return f"the key {spelled} is not in lower case"
        if key != "offset":
            return f"there is no {key}"
    number = fields.get("sequencenumber") or ""
    if is_checkpoint and decimal_int64(number) is None:
        return f"the sequencenumber {quoted(number)} is no number"
    return None


def ownership_row(scope: Scope, partition_id: str, blob: Blob) -> Ownership:
    """Return the ownership that a listed blob holds."""
    owner_id, modified = owner_of(blob.metadata), blob.last_modified.timestamp()
    return Ownership(scope, partition_id, owner_id, bare_etag(blob.etag), modified)


def checkpoint_row(scope: Scope, partition_id: str, blob: Blob) -> Checkpoint:
    """Return the checkpoint that a blob holds, without a position if it has none."""
    modified = blob.last_modified.timestamp()
    return checkpoint_of(scope, partition_id, blob.metadata, bare_etag(blob.etag), modified)


def new_etag(etag: object) -> str:
    """Return the etag of a confirmed write; without one, the answer is not from the service."""
    if not etag:
        raise StoreUnavailableError("a write was answered without an etag; is a proxy in the way?")
    return bare_etag(str(etag))
