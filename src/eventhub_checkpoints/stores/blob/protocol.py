"""What is said to Azure Blob Storage, and what its answers mean.

Source: `docs/wire-format.md`, which every official SDK's blobs were compared for.
"""

from email.utils import parsedate_to_datetime
from enum import Enum, auto

from eventhub_checkpoints.errors import (
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint

DEFAULT_API_VERSION = "2019-07-07"
"""What the official Python stores send. Source: azure-eventhub-checkpointstoreblob 1.2.0."""

RIGHTS = {
    "list": "List on the container",
    "read": "Read on its blobs",
    "create": "Create or Write on its blobs",
    "write": "Write on its blobs",
    "delete": "Delete on its blobs",
    "create the container": "Create on containers, which no SAS of a container has",
}
ROLE = "the role 'Storage Blob Data Contributor' has all that is needed"


class Verdict(Enum):
    """What an answer that is no success says about a conditional write."""

    LOST = auto()
    ABSENT = auto()
    FAILED = auto()


def verdict(status: int | None, code: str) -> Verdict:
    """Whether somebody else was first, no blob is there, or the request failed.

    A status alone does not tell: 404 is also a missing container, 409 one that is being deleted,
    412 also a blob that somebody has leased.
    """
    if (status, code) in {(409, "BlobAlreadyExists"), (412, "ConditionNotMet")}:
        return Verdict.LOST
    if (status, code) == (404, "BlobNotFound"):
        return Verdict.ABSENT
    return Verdict.FAILED


def is_blocked(status: int | None, code: str) -> bool:
    """Whether this one blob cannot be written by anybody: it is leased, or immutable."""
    return status in {409, 412} and not code.startswith("Container")


def ownership_metadata(owner_id: str) -> dict[str, str]:
    """An ownership as metadata; `""` when the partition is released."""
    return {"ownerid": header_text("owner_id", owner_id)}


def checkpoint_metadata(checkpoint: Checkpoint) -> dict[str, str]:
    """A checkpoint as metadata: always both keys, an offset that is not known as `""`."""
    return {
        "offset": header_text("offset", checkpoint.offset),
        "sequencenumber": str(checkpoint.sequence_number),
    }


def header_text(field: str, value: str) -> str:
    """A value that survives as an HTTP header.

    Raises:
        InvalidRecordError: it is not ASCII, or begins or ends with a space.
    """
    if not value.isascii() or value != value.strip():
        raise InvalidRecordError(field, value, "ASCII without spaces at its ends")
    return value


def bare_etag(etag: str) -> str:
    """The etag without quotes: a list gives it bare, a write quoted."""
    return etag.strip('"')


def server_time(date: str | None) -> float | None:
    """A response's `Date` in epoch seconds (resolution 1 s); None where a proxy removed it."""
    return parsedate_to_datetime(date).timestamp() if date else None


def failure(status: int, code: str, operation: str, where: str) -> StoreError:
    """The error for a status that is no success.

    Args:
        status: of the response.
        code: the response's `x-ms-error-code`; `""` if there is none.
        operation: a key of `RIGHTS`.
        where: the container and its account, for people.
    """
    said = f"{status} {code}".strip()
    if code in {"ContainerNotFound", "ContainerBeingDeleted"}:
        return StoreNotReadyError(
            f"{where} does not exist ({said}): create it with store.create(), "
            "create_container=True or create = true in a configuration"
        )
    if status in {401, 403}:
        return StoreAccessError(f"{where}: {refusal(code, operation)} ({said})")
    if status in {408, 429} or status >= 500:
        return StoreUnavailableError(f"{where}: the service answered {said}")
    hint = "" if code else "; is the URL that of Blob Storage, and is a proxy in the way?"
    asked = f"request to {operation}" if " " in operation else operation
    return StoreError(f"{where}: the service answered {said} to a {asked}{hint}")


def refusal(code: str, operation: str) -> str:
    """What the service says is missing, in words."""
    if code == "AuthorizationPermissionMismatch":
        return f"the credential lacks {RIGHTS[operation]}; {ROLE}"
    if code in {"AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch"}:
        return "the SAS is not for blobs and containers; make one for the container"
    if code in {"AuthorizationFailure", "AuthorizationSourceIPMismatch"}:
        return "the credential is not valid for it, or network rules shut this machine out"
    if code == "KeyBasedAuthenticationNotPermitted":
        return "the account allows no shared key; use an Entra credential"
    return f"the credential was refused to {operation}; is it valid, unexpired, of this account?"
