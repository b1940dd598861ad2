"""Names, metadata and status codes of the blobs, as in every official SDK."""

from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Literal

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Scope

Kind = Literal["ownership", "checkpoint"]
NameCase = Literal["lower", "as-typed"]
KINDS: tuple[Kind, ...] = ("ownership", "checkpoint")

LONGEST_NAME = 1024
"""Maximum length of a blob name. Source: Azure Storage, "Naming and Referencing Containers"."""


def checked_name_case(name_case: str) -> NameCase:
    """Return the name case of a scope, if it is valid.

    Raises:
        ConfigurationError: it is not a `NameCase`.
    """
    if name_case == "lower":
        return "lower"
    if name_case == "as-typed":
        return "as-typed"
    raise ConfigurationError(f"name_case is {quoted(name_case)}; expected 'lower' or 'as-typed'")


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
ROLE = "the role 'Storage Blob Data Contributor' has all that is needed"


class Verdict(Enum):
    """Reason for which a conditional write failed."""

    LOST = auto()
    ABSENT = auto()
    FAILED = auto()


def verdict(status: int | None, code: str) -> Verdict:
    """Return whether the write conflicted, the blob does not exist, or the request failed.

    The status alone is ambiguous: 404 may be a missing container, 409 a container that is being
    deleted, 412 a leased blob.
    """
    if (status, code) in {(409, "BlobAlreadyExists"), (412, "ConditionNotMet")}:
        return Verdict.LOST
    if (status, code) == (404, "BlobNotFound"):
        return Verdict.ABSENT
    return Verdict.FAILED


def is_blocked(status: int | None, code: str) -> bool:
    """Return whether no client can write this one blob: it is leased, or immutable."""
    return status in {409, 412} and not code.startswith("Container")


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


def server_time(date: str | None) -> float | None:
    """Return a response's `Date` in epoch seconds (resolution 1 s); None if a proxy removed it."""
    return parsedate_to_datetime(date).timestamp() if date else None


def failure(status: int, code: str, operation: str, where: str) -> StoreError:
    """Return the error for an unsuccessful status.

    Args:
        status: of the response.
        code: the response's `x-ms-error-code`; `""` if there is none.
        operation: a key of `RIGHTS`.
        where: the container and its account, for messages.
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
    """Return a message about the missing permission."""
    if code == "AuthorizationPermissionMismatch":
        return f"the credential lacks {RIGHTS[operation]}; {ROLE}"
    if code in {"AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch"}:
        return "the SAS is not for blobs and containers; make one for the container"
    if code in {"AuthorizationFailure", "AuthorizationSourceIPMismatch"}:
        return "the credential is not valid for it, or network rules shut this machine out"
    if code == "KeyBasedAuthenticationNotPermitted":
        return "the account allows no shared key; use an Entra credential"
    return f"the credential was refused to {operation}; is it valid, unexpired, of this account?"
