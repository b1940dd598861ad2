"""Keys and properties of entities as in the official JavaScript store, and what answers mean.

Source: npm, @azure/eventhubs-checkpointstore-table 1.0.0-alpha.20250804.1,
`tableCheckpointStore.js`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, TypeVar

from eventhub_checkpoints.errors import InvalidRecordError, StoreError
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.azure_storage import errors
from eventhub_checkpoints.stores.azure_storage.account import Service
from eventhub_checkpoints.stores.azure_storage.authorization import text_to_sign_of_tables
from eventhub_checkpoints.stores.azure_storage.messages import Refusal, Verdict
from eventhub_checkpoints.stores.azure_storage.name_case import NameCase, spelled
from eventhub_checkpoints.stores.backends import TABLE
from eventhub_checkpoints.stores.claim_batches import in_batches
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import checkpoint_of, is_row, owner_of, stored_scope
from eventhub_checkpoints.stores.table.rest import Entity, Key

Row = TypeVar("Row", Ownership, Checkpoint)
Kind = Literal["Ownership", "Checkpoint", "History"]
KINDS: tuple[Kind, ...] = ("Ownership", "Checkpoint")
"""Those of the JavaScript store, which make a group."""

SERVICE = Service(
    TABLE,
    "table",
    names=re.compile("(?!(?i:tables)$)[A-Za-z][A-Za-z0-9]{2,62}"),
    name_rule="3 to 63 letters and digits, a letter first",
    contents="tables and their entities",
    rights={
        "query": "Query on the table",
        "add": "Add on the table",
        "update": "Update on the table, and Add for a checkpoint by force",
        "delete": "Delete on the table",
        "create the table": "Create on tables, which no SAS of a table has",
    },
    role="Storage Table Data Contributor",
    deletion="40 seconds",
    text_to_sign=text_to_sign_of_tables,
)
"""Source of the names: Azure Storage, "Understanding the Table service data model", "Table names".
"""
DEFAULT_API_VERSION = "2019-02-02"
"""Sent by the official drivers. Source: azure-data-tables 12.7.0."""
LONGEST_KEY = 1024
"""Maximum size of a key in bytes of UTF-16.

Source: Azure Storage, "Understanding the Table service data model".
"""
ETAG = re.compile(r'W/"[!#-~]*"')
NO_ETAG = "W/\"datetime'1601-01-01T00%3A00%3A00Z'\""
"""Etag of the earliest time that an entity can hold."""
NOT_IN_KEYS = "#?"
"""Characters that no key can have, besides slashes and control characters, which no name has."""


@lru_cache(maxsize=1024)
def partition_key(scope: Scope, kind: Kind, name_case: NameCase) -> str:
    """Return the partition key of a scope's entities of one kind.

    Raises:
        InvalidRecordError: a name has a space, by which the names are joined, or is not one that a
            key can hold.
    """
    for field, name in scope.as_dict().items():
        if " " in name:
            raise InvalidRecordError(
                field, name, "a name without spaces, which separate the names in a table's key"
            )
        check_characters(field, name)
    key = " ".join([*spelled(scope, name_case), kind])
    longest = max(scope.as_dict().items(), key=lambda item: len(item[1]))
    check_size(*longest, key)
    return key


@lru_cache(maxsize=4096)
def entity_key(scope: Scope, kind: Kind, partition_id: str, name_case: NameCase) -> Key:
    """Return the key of one partition's entity.

    Raises:
        InvalidRecordError: a name is not one that a key can hold.
    """
    check_characters("partition_id", partition_id)
    check_size("partition_id", partition_id, partition_id)
    return Key(partition_key(scope, kind, name_case), partition_id)


def check_characters(field: str, name: str) -> None:
    """Refuse a name with a character that no key can have."""
    if not set(NOT_IN_KEYS).isdisjoint(name):
        raise InvalidRecordError(
            field, name, "a name without # and ?, which no table's key can have"
        )


def check_size(field: str, name: str, key: str) -> None:
    """Refuse a key that is too long."""
    size = len(key.encode("utf-16-le", "surrogatepass"))
    if size > LONGEST_KEY:
        raise InvalidRecordError(
            field, name, f"a key of at most {LONGEST_KEY // 2} characters, not {size // 2}"
        )


def scope_of(key: str) -> Scope | None:
    """Return the scope of a partition key; None if it is that of other entities."""
    *names, kind = key.split(" ")
    return stored_scope(names) if kind in KINDS else None


def ownership_fields(owner_id: str) -> dict[str, str]:
    """Return an ownership as properties; `owner_id` is `""` for a released partition."""
    return {"ownerid": owner_id}


def checkpoint_fields(checkpoint: Checkpoint) -> dict[str, str]:
    """Return a checkpoint as properties: always both, an unknown offset as `""`."""
    return {
        "sequencenumber": str(checkpoint.sequence_number),
        "offset": checkpoint.offset,
    }


def verdict(answer: str | Refusal) -> Verdict:
    """Return what became of a write, which answers with the new etag if it was carried out.

    The status alone is ambiguous: 404 may be a missing table, 409 one that is being deleted.
    """
    if isinstance(answer, str):
        return Verdict.DONE
    status, code = answer.status, answer.code
    if (status, code) == (409, "EntityAlreadyExists") or (
        status == 412 and code in {"UpdateConditionNotSatisfied", "ConditionNotMet"}
    ):
        return Verdict.LOST
    if status == 404 and code in {"ResourceNotFound", "EntityNotFound"}:
        return Verdict.ABSENT
    return Verdict.FAILED


def failure(refusal: Refusal, address: str) -> StoreError:
    """Return the error for a request that was not carried out.

    Args:
        refusal: the response.
        address: the table's URL, without a SAS.
    """
    return errors.failure(refusal, address, SERVICE)


def listing(
    entities: Iterable[Entity],
    server_now: float | None,
    read: Callable[[Entity], Row],
) -> Listing[Row]:
    """Return the rows among the entities of one partition key; skip those of other programs."""
    rows: list[Row] = []
    skipped: list[str] = []
    for entity in entities:
        row = read(entity) if is_row(entity.key.row, entity.fields) else None
        if row is None or (isinstance(row, Checkpoint) and not row.is_readable):
            skipped.append(
                f"entity {entity.key.row!r} of {entity.key.partition!r} was left out: it is not a "
                "readable record"
            )
            continue
        rows.append(row)
    return Listing(rows, server_now, skipped)


def ownership_row(scope: Scope, entity: Entity) -> Ownership:
    """Return the ownership that an entity holds."""
    owner_id = owner_of(entity.fields)
    return Ownership(scope, entity.key.row, owner_id, entity.etag, entity.modified)


def checkpoint_row(scope: Scope, entity: Entity) -> Checkpoint:
    """Return the checkpoint that an entity holds, without a position if it has none."""
    return checkpoint_of(scope, entity.key.row, entity.fields, entity.etag, entity.modified)


def sendable_etag(etag: str) -> str:
    """Return an etag if it could be one of the service's, else one that no entity has.

    The service refuses a request with any other text, whether or not the entity exists.
    """
    return etag if ETAG.fullmatch(etag) else NO_ETAG


def in_requests(proposals: Sequence[Proposal], limit: int) -> list[list[Proposal]]:
    """Return the proposals as they are sent: renewals together, first claims one by one.

    The renewals of one scope are one request, which names no partition twice, and has at most
    `limit`. A first claim creates an entity; if it exists, it would fail a whole request.
    """
    batches = in_batches(proposals, limit, lambda each: each if each.etag is None else each.scope)
    return [*chain.from_iterable(batches)]
