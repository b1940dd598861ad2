"""Names, metadata and status codes of blobs as in every official SDK, and what they mean."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints.errors import (
    ConfigurationError,
    InvalidRecordError,
    StoreError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.azure_storage import errors, messages
from eventhub_checkpoints.stores.azure_storage.account import Service
from eventhub_checkpoints.stores.azure_storage.authorization import text_to_sign
from eventhub_checkpoints.stores.azure_storage.messages import Refusal, Verdict
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase, spelled
from eventhub_checkpoints.stores.backends import BLOB
from eventhub_checkpoints.stores.blob.rest import Blob
from eventhub_checkpoints.stores.hook_results import Listing, OfficialFault
from eventhub_checkpoints.stores.record_format import (
    Fields,
    checkpoint_of,
    decimal_int64,
    is_row,
    owner_of,
    stored_scope,
)

Row = TypeVar("Row", Ownership, Checkpoint)
Kind = Literal["ownership", "checkpoint"]
KINDS: tuple[Kind, ...] = ("ownership", "checkpoint")

SERVICE = Service(
    BLOB,
    "container",
    names=re.compile(r"\$root|(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]"),
    name_rule="3 to 63 lower-case letters, digits and single hyphens",
    contents="blobs and containers",
    rights={
        "list": "List on the container",
        "read": "Read on its blobs",
        "create": "Create or Write on its blobs",
        "write": "Write on its blobs",
        "delete": "Delete on its blobs",
        "create the container": "Create on containers, which no SAS of a container has",
    },
    role="Storage Blob Data Contributor",
    deletion="half a minute",
    text_to_sign=text_to_sign,
)
"""Source of the names: Azure Storage, "Naming and Referencing Containers, Blobs, and Metadata"."""

LONGEST_NAME = 1024
"""Maximum length of a blob name. Source: Azure Storage, "Naming and Referencing Containers"."""

LONGEST_PREFIX = 256
"""Characters; the names of a namespace, a hub, a group and a partition follow."""
# A part that ends in a dot loses it on its way to the service, and `..` also the part before it.
PREFIX_PART = r"(?:[A-Za-z0-9._-]*[A-Za-z0-9_-])"
PREFIX = re.compile(rf"{PREFIX_PART}(?:/{PREFIX_PART})*")


def checked_prefix(prefix: Any) -> str:
    """Return the prefix of a store's blob names if it is valid; `""` for None.

    Raises:
        ConfigurationError: it is not one. What could be a secret is not shown.
    """
    if prefix is None:
        return ""
    if prefix == "":
        raise ConfigurationError("prefix is empty; leave it out, or name one, such as team-a")
    is_prefix = isinstance(prefix, str) and PREFIX.fullmatch(prefix)
    if not is_prefix or holds_secret(prefix):
        raise ConfigurationError(
            f"prefix is {quoted(prefix)}; expected names of ASCII letters, digits, '.', '_' and "
            "'-' with a / between them, such as team-a/orders: no / at the ends, no // and no name "
            "that ends in a dot"
        )
    if len(prefix) > LONGEST_PREFIX:
        raise ConfigurationError(
            f"prefix has {len(prefix)} characters; expected at most {LONGEST_PREFIX}"
        )
    return str(prefix)


class BlobNames(NamedTuple):
    """The names of a store's blobs.

    Attributes:
        name_case: how the names of namespace, hub and group are written.
        prefix: what is before them, unchanged; `""`, or with a slash at its end.
    """

    name_case: NameCase = "lower"
    prefix: str = ""

    def start(self, scope: Scope, kind: Kind) -> str:
        """Return the beginning of the names of a scope's blobs of one kind."""
        return f"{self.prefix}{spelled(scope, self.name_case)}/{kind}/"

    def scope_of(self, beginning: str) -> Scope | None:
        """Return the scope of a name's beginning; None if it is not `a/b/c/` after the prefix."""
        return stored_scope(beginning.removeprefix(self.prefix).removesuffix("/").split("/"))


# A store uses few names, and each many times.
@lru_cache(maxsize=4096)
def blob_name(names: BlobNames, scope: Scope, kind: Kind, partition_id: str) -> str:
    """Return the name of one partition's blob.

    Raises:
        InvalidRecordError: the name is longer than the service allows.
    """
    name = names.start(scope, kind) + partition_id
    if len(name) > LONGEST_NAME:
        raise InvalidRecordError(
            "partition_id",
            partition_id,
            f"a blob name of at most {LONGEST_NAME} characters, not {len(name)}",
        )
    return name


DEFAULT_API_VERSION = "2019-07-07"
"""Sent by the official Python stores. Source: azure-eventhub-checkpointstoreblob 1.2.0."""


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


def failure(refusal: Refusal, address: str) -> StoreError:
    """Return the error for a request that was not carried out.

    Args:
        refusal: the response.
        address: the container's URL, without a SAS.
    """
    return errors.failure(refusal, address, SERVICE, FORBIDDEN)


FORBIDDEN = {
    "RequestForbiddenByContainerEncryptionPolicy": "the container accepts only blobs of its own "
    "encryption scope, and the SAS or the request names another (ses). The credential's rights "
    "are not the reason",
    "UnauthorizedBlobOverwrite": SERVICE.lacks("write"),
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
    `list_checkpoints`; run, with the stores of other languages: `docs/reference/wire-format.md`.
    """
    for key in ("offset", "sequencenumber") if is_checkpoint else ("ownerid",):
        if key in fields:
            continue
        if name := next((name for name in fields if name.lower() == key), None):
            return f"the key {name} is not in lower case"
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


def new_etag(etag: str | None) -> str:
    """Return the etag of a confirmed write, without quotes."""
    return bare_etag(messages.new_etag(etag))
