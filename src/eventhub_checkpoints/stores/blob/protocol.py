"""Names, metadata and status codes of blobs as in every official SDK, and the driver's answers."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast
from urllib.parse import unquote

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from eventhub_checkpoints._shared.connection_errors import innermost, is_untrusted, why_unreached
from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.blob.rest import Blob, moment
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import checkpoint_of, is_row, owner_of

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

EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (  # published with the emulator and the same everywhere: not a secret
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

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
    """Return a response's `Date` in epoch seconds (resolution 1 s); None if a proxy damaged it."""
    return moment(date or "").timestamp() or None


def described(address: str) -> str:
    """Return the container and its account, for messages.

    Args:
        address: the container's URL, without a SAS.
    """
    account, _, name = address.rpartition("/")
    return f"container {unquote(name)!r} of {account}"


def failure(status: int, code: str, operation: str, where: str) -> StoreError:
    """Return the error for an unsuccessful status.

    Args:
        status: of the response.
        code: the response's `x-ms-error-code`; `""` if there is none.
        operation: a key of `RIGHTS`.
        where: the container and its account, for messages.
    """
    answer = f"{status} {code}".strip()
    if code == "ContainerBeingDeleted" and operation == "create the container":
        return StoreUnavailableError(
            f"{where} is being deleted ({answer}), which takes half a minute or longer: wait until "
            "then, or name another container"
        )
    if code in {"ContainerNotFound", "ContainerBeingDeleted"}:
        return StoreNotReadyError(
            f"{where} does not exist ({answer}): create it with store.create(), "
            "create_container=True or create = true in a configuration"
        )
    # The code comes with 401 for an expired token, and with 400 for a malformed header.
    if status in {401, 403} or code == "InvalidAuthenticationInfo":
        return StoreAccessError(f"{where}: {refusal(code, operation)} ({answer})")
    if status in {408, 429} or status >= 500:
        return StoreUnavailableError(f"{where}: the service answered {answer}")
    hint = "" if code else "; is the URL that of Blob Storage, and is a proxy in the way?"
    request = f"request to {operation}" if " " in operation else operation
    return StoreError(f"{where}: the service answered {answer} to a {request}{hint}")


OF_OTHER_SERVICE = "the SAS is not for blobs and containers; make one for the container"
NOT_VALID_HERE = "the credential is not valid for it, or network rules shut this machine out"
FORBIDDEN = {
    "AccountIsDisabled": "the storage account is disabled, as when its subscription has ended; "
    "enable it. The credential is not the reason",
    "InsufficientAccountPermissions": "the storage account allows no such request now, as while "
    "reading or writing is switched off. The credential is not the reason",
    "RequestForbiddenByContainerEncryptionPolicy": "the container accepts only blobs of its own "
    "encryption scope, and the SAS or the request names another (ses). The credential's rights "
    "are not the reason",
    "AuthorizationProtocolMismatch": "the SAS or the account allows HTTPS only; use https://",
    "AuthorizationResourceTypeMismatch": OF_OTHER_SERVICE,
    "AuthorizationServiceMismatch": OF_OTHER_SERVICE,
    "AuthorizationFailure": NOT_VALID_HERE,
    "AuthorizationSourceIPMismatch": NOT_VALID_HERE,
    "KeyBasedAuthenticationNotPermitted": "the account allows no shared key; use an Entra "
    "credential",
}
"""What codes of status 403 mean, apart from those that name a right.

Source: Azure Storage, "Common REST API error codes", "Blob Storage error codes", "SAS error codes",
"Troubleshoot 403 errors".
"""


def refusal(code: str, operation: str) -> str:
    """Return a message about what was forbidden, and why."""
    if code in {"AuthorizationPermissionMismatch", "UnauthorizedBlobOverwrite"}:
        right = RIGHTS["write" if code == "UnauthorizedBlobOverwrite" else operation]
        return f"the credential lacks {right}; {ROLE}"
    if code in FORBIDDEN:
        return FORBIDDEN[code]
    return f"the credential was refused to {operation}; is it valid, unexpired, of this account?"


def listing(
    blobs: Iterable[Blob],
    start: str,
    server_now: float | None,
    read: Callable[[str, Blob], Row],
) -> Listing[Row]:
    """Return the rows among the blobs whose names begin with `start`; skip foreign blobs."""
    rows: list[Row] = []
    skipped: list[str] = []
    for blob in blobs:
        partition_id = str(blob.name)[len(start) :]
        row = read(partition_id, blob) if is_row(partition_id, blob.metadata) else None
        if row is None or (isinstance(row, Checkpoint) and not row.is_readable):
            skipped.append(f"blob {blob.name!r} was left out: it is not a readable record")
        else:
            rows.append(row)
    return Listing(rows, server_now, skipped)


def ownership_row(scope: Scope, partition_id: str, blob: Blob) -> Ownership:
    """Return the ownership that a listed blob holds."""
    owner_id, modified = owner_of(blob.metadata), blob.last_modified.timestamp()
    return Ownership(scope, partition_id, owner_id, bare_etag(blob.etag), modified)


def checkpoint_row(scope: Scope, partition_id: str, blob: Blob) -> Checkpoint:
    """Return the checkpoint that a blob holds, without a position if it has none."""
    modified = blob.last_modified.timestamp()
    return checkpoint_of(scope, partition_id, blob.metadata, bare_etag(blob.etag), modified)


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


def expected(error: HttpResponseError) -> Verdict:
    """Return the verdict for an expected failure of a conditional write; raise any other."""
    reason = verdict(error.status_code, error_code(error))
    if reason is Verdict.FAILED:
        raise error
    return reason


def is_absent(error: HttpResponseError) -> bool:
    """Return whether Get Blob Properties found no blob in an existing container.

    A response without a body may have no error code; for a missing container it has one.
    """
    return error.status_code == 404 and error_code(error) in {"BlobNotFound", ""}


def may_be_absent(error: HttpResponseError) -> bool:
    """Return whether this server answers "condition not met" for a missing blob.

    Azure answers 404; Azurite 3.35 answers 412, and is recognised by its `Server` header.
    """
    headers = cast("Any", error.response).headers
    return str(headers.get("Server", "")).startswith("Azurite")


def operation_of(error: HttpResponseError) -> str:
    """Return the operation of the request that was refused."""
    request = cast("Any", error.response).request
    operations = {"GET": "list", "HEAD": "read", "DELETE": "delete"}
    if request.method in operations:
        return operations[request.method]
    if "restype=container" in request.url:
        return "create the container"
    return "write" if "comp=metadata" in request.url else "create"


def mapped(error: Exception, address: str) -> StoreError:
    """Convert an error of azure-core to an error of this package.

    Args:
        error: of the driver, or raised by the connections.
        address: the container's URL, without a SAS.
    """
    where = described(address)
    shown = f"{masked(str(error))} ({type(error).__name__})"
    if isinstance(error, ClientAuthenticationError) and not error_code(error):
        # The token provider or the request signing failed; any status may accompany it.
        if type(error).__name__ == "AzureSigningError":
            shown = "the account key is not in base64; copy it again from the account's access keys"
        return StoreAccessError(f"{where}: {shown}")
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return failure(error.status_code, error_code(error), operation_of(error), where)
    if not isinstance(error, (AzureError, OSError)):
        return StoreError(f"{where}: {shown}")
    if is_untrusted(error):
        return StoreAccessError(
            f"{where}: its certificate is not trusted: name the file of its authority as "
            f"connection_verify=FILE ({masked(str(innermost(error)))})"
        )
    return StoreUnavailableError(f"{where}: {unreached(error)}")


def unreached(error: AzureError | OSError) -> str:
    """Return the cause of a missing response, without the request that the driver repeats."""
    cause = innermost(error)
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    message = masked(str(cause)) or "no answer"
    through = "through a proxy, " if "proxy" in str(error).lower() else ""
    reason = why_unreached(error) or f"the connection failed: {message} ({type(cause).__name__})"
    return through + reason
