"""Tables on PostgreSQL and SQLite, and rows as parameters and results.

`docs/sql.md` describes them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores import record_format as dialects
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import is_row, owner_of, position_fields

PARAMETER = re.compile(r":([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of the three tables, quoted."""

    namespace: str
    schema: str | None = None

    @property
    def ownership(self) -> str:
        """Name of the table of ownerships."""
        return self.quoted("ownership")

    @property
    def checkpoint(self) -> str:
        """Name of the table of checkpoints."""
        return self.quoted("checkpoint")

    @property
    def version(self) -> str:
        """Name of the table of applied migrations."""
        return self.quoted("version")

    def quoted(self, kind: str) -> str:
        """Return the quoted name of a table."""
        name = f'"{self.namespace}_{kind}"'
        return f'"{self.schema}".{name}' if self.schema else name


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in one driver's parameter style; `order` if its parameters have no names."""

    text: str
    order: tuple[str, ...] = ()

    def filled(self, values: Mapping[str, Any]) -> Any:
        """Return the parameters in the driver's style."""
        return tuple(values[name] for name in self.order) if self.order else values


def spelled(text: str, driver: str) -> Statement:
    """Convert a statement with parameters `:name` to the driver's style."""
    if driver == "asyncpg":
        order = tuple(dict.fromkeys(PARAMETER.findall(text)))
        return Statement(PARAMETER.sub(lambda name: f"${order.index(name[1]) + 1}", text), order)
    return Statement(PARAMETER.sub(r"%(\1)s", text) if driver == "psycopg" else text)


def scope_values(scope: Scope) -> dict[str, Any]:
    """Return the three names as they are stored."""
    return {**scope.folded.as_dict()}


def row_values(scope: Scope, partition_id: str) -> dict[str, Any]:
    """Return the primary key of a row."""
    return {**scope_values(scope), "partition_id": partition_id}


def proposal_values(proposal: Proposal) -> dict[str, Any]:
    """Return one claim as a row."""
    return {
        **row_values(proposal.scope, proposal.partition_id),
        "owner_id": proposal.owner_id,
        "etag": proposal.etag,
        "new_etag": proposal.new_etag,
    }


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the rows of a batch as arrays: one statement, and one plan, for any batch size."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def checkpoint_values(checkpoint: Checkpoint, writer: str) -> dict[str, Any]:
    """Return a checkpoint as a row."""
    return {
        **row_values(checkpoint.scope, checkpoint.partition_id),
        "offset": checkpoint.offset,
        "sequence_number": checkpoint.sequence_number,
        "version": checkpoint.version,
        "writer": writer,
    }


Row = Sequence[Any]
Record = TypeVar("Record", Ownership, Checkpoint)


def listing(
    rows: Iterable[Row], scope: Scope, read: Callable[[Scope, Row], Record | None]
) -> Listing[Record]:
    """Return the records among the rows; skip those that cannot be read."""
    found, skipped = [], []
    for row in rows:
        record = read(scope, row) if is_row(str(row[0]), {}) else None
        if record is None:
            skipped.append(f"the row of {row[0]!r} in {scope} was left out: it cannot be read")
        else:
            found.append(record)
    return Listing(found, skipped=skipped)


def ownership_of(scope: Scope, row: Row) -> Ownership | None:
    """Return the ownership in a row; None if its time is invalid."""
    partition_id, owner_id, etag, last_modified_time = row[:4]
    if not (isinstance(last_modified_time, float) and isfinite(last_modified_time)):
        return None
    owner = owner_of({"ownerid": str(owner_id)})
    return Ownership(scope, partition_id, owner, str(etag), last_modified_time)


def checkpoint_of(scope: Scope, row: Row) -> Checkpoint:
    """Return the checkpoint in a row, without a position if it has none."""
    partition_id, offset, number, version = row
    fields = position_fields(offset, number)
    return dialects.checkpoint_of(scope, partition_id, fields, str(version))


def readable_checkpoint(scope: Scope, row: Row) -> Checkpoint | None:
    """Return the checkpoint in a row; None if it has no position."""
    found = checkpoint_of(scope, row)
    return found if found.is_readable else None
