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
    """How the three tables are called, quoted."""

    namespace: str
    schema: str | None = None

    @property
    def ownership(self) -> str:
        """Who owns a partition."""
        return self.quoted("ownership")

    @property
    def checkpoint(self) -> str:
        """How far a partition was processed."""
        return self.quoted("checkpoint")

    @property
    def version(self) -> str:
        """Which migrations were applied."""
        return self.quoted("version")

    def quoted(self, kind: str) -> str:
        """The name of a table, as it is written in a statement."""
        name = f'"{self.namespace}_{kind}"'
        return f'"{self.schema}".{name}' if self.schema else name


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as one driver takes it; `order` where its parameters have no names."""

    text: str
    order: tuple[str, ...] = ()

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The parameters as the driver takes them."""
        return tuple(values[name] for name in self.order) if self.order else values


def spelled(text: str, driver: str) -> Statement:
    """The statement with its parameters, which are written `:name`, as the driver wants them."""
    if driver == "asyncpg":
        order = tuple(dict.fromkeys(PARAMETER.findall(text)))
        return Statement(PARAMETER.sub(lambda name: f"${order.index(name[1]) + 1}", text), order)
    return Statement(PARAMETER.sub(r"%(\1)s", text) if driver == "psycopg" else text)


def scope_values(scope: Scope) -> dict[str, Any]:
    """The three names as they are stored."""
    return {**scope.folded.as_dict()}


def row_values(scope: Scope, partition_id: str) -> dict[str, Any]:
    """The primary key of a row."""
    return {**scope_values(scope), "partition_id": partition_id}


def proposal_values(proposal: Proposal) -> dict[str, Any]:
    """One claim, as a row."""
    return {
        **row_values(proposal.scope, proposal.partition_id),
        "owner_id": proposal.owner_id,
        "etag": proposal.etag,
        "new_etag": proposal.new_etag,
    }


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The rows of a batch as arrays: one statement, and one plan, for any number of them."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def checkpoint_values(checkpoint: Checkpoint, writer: str) -> dict[str, Any]:
    """A checkpoint, as a row."""
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
