"""What rows of the tables hold."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores import record_format as dialects
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import is_row, owner_of, position_fields

Row = Mapping[str, Any]


def seconds(time: datetime | None) -> float:
    """A time that the driver read, which has no zone and is UTC; a row without one is very old."""
    return time.replace(tzinfo=UTC).timestamp() if time else 0.0


def ownerships(scope: Scope, rows: Sequence[Row]) -> Listing[Ownership]:
    """The ownerships of a scope; a row that nobody could claim over is skipped."""
    readable = [row for row in rows if row["etag"] and is_row(row["partition_id"], {})]
    found = [
        Ownership(
            scope,
            row["partition_id"],
            owner_of({"ownerid": row["owner_id"]}),
            row["etag"],
            seconds(row["last_modified_time"]),
        )
        for row in readable
    ]
    server_now = seconds(rows[0]["server_now"]) if rows else None
    return Listing(found, server_now, skipped(scope, "ownership", rows, readable))


def checkpoints(scope: Scope, rows: Sequence[Row]) -> Listing[Checkpoint]:
    """The checkpoints of a scope; a row that tells nothing is skipped."""
    readable = [
        row
        for row in rows
        if is_row(row["partition_id"], {}) and checkpoint_of(scope, row).is_readable
    ]
    found = [checkpoint_of(scope, row) for row in readable]
    return Listing(found, skipped=skipped(scope, "checkpoint", rows, readable))


def checkpoint_of(scope: Scope, row: Row) -> Checkpoint:
    """The checkpoint of a row, without a position where it has none."""
    fields = position_fields(row["offset"], row["sequence_number"])
    return dialects.checkpoint_of(scope, row["partition_id"], fields, row["version"] or "")


def skipped(scope: Scope, kind: str, rows: Iterable[Row], readable: Sequence[Row]) -> list[str]:
    """One sentence for each row that could not be read."""
    left_out = {row["partition_id"] for row in rows} - {row["partition_id"] for row in readable}
    return [f"row {one!r} of {scope} was left out: it is no {kind}" for one in sorted(left_out)]


def settled(proposals: Sequence[Proposal], rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Why a batch was not carried out: the partitions that are lost, and those without a row.

    Args:
        proposals: the batch, each partition once.
        rows: its answer, which has every stored row that a condition looked at.
    """
    stored = {row["partition_id"]: row["etag"] for row in rows if row.get("partition_id")}
    asked = {one.partition_id: one.etag for one in proposals}
    lost = {name for name, etag in stored.items() if etag is None or asked.get(name) != etag}
    vanished = {name for name, etag in asked.items() if etag and name not in stored}
    return lost, vanished


def in_batches(proposals: Sequence[Proposal], limit: int) -> list[list[list[Proposal]]]:
    """The proposals of each scope, in batches that name no partition twice."""
    scopes: dict[Scope, list[list[Proposal]]] = {}
    for proposal in proposals:
        batches = scopes.setdefault(proposal.scope.folded, [])
        for batch in batches:
            if len(batch) < limit and all(proposal.partition_id != o.partition_id for o in batch):
                batch.append(proposal)
                break
        else:
            batches.append([proposal])
    return list(scopes.values())
