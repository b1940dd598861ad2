"""`ehcp delete`: delete the rows of a group, or release the ownerships of dead consumers."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.texts import duration
from eventhub_checkpoints.cli.change import (
    Execute,
    Partitions,
    change_group,
    outcome_for_json,
    partition_list,
    print_outcome,
    refusals,
    words,
)
from eventhub_checkpoints.cli.output import Json, print_json, print_table
from eventhub_checkpoints.cli.records import Record, locked
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import refuse_active
from eventhub_checkpoints.operations.groups import Group, group
from eventhub_checkpoints.records import RELEASED, Scope


@on_target
def delete(
    target: Target,
    *,
    partitions: Partitions = None,
    owners: Annotated[
        bool,
        typer.Option(
            "--owners", help="Release the ownerships of dead consumers; keep all positions."
        ),
    ] = False,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Delete the rows of a group or of some of its partitions: positions and ownerships.

    Consumers then start at their starting position. Active groups are refused. With --owners, only
    ownerships that expired are released, so that consumers need not wait; others stay.
    """
    scope, ids = target.scope, partition_list(partitions)
    with target.open_store() as store, refusals(), locked(scope) if execute else nullcontext():
        found = group(store, scope, expires_after=target.expires_after)
        chosen = [id_ for id_ in found.partition_ids if id_ in ids or not ids]
        if absent := [id_ for id_ in ids if id_ not in chosen]:
            raise ConfigurationError(f"{scope} has no row of partition {', '.join(absent)}")
        outcome: tuple[Record, int] | None = None
        if owners:
            owned = found.ownerships
            chosen = [id_ for id_ in chosen if id_ in owned and owned[id_].is_dead]
            if execute:
                release(store, scope, chosen)
        else:
            refuse_active(found, way_out="stop its consumers: they would store their rows again")
            if execute and chosen:
                command = words("delete", partitions=",".join(ids) or None)
                nothing = dict.fromkeys(chosen)
                outcome = change_group(
                    store, target, found, command, nothing, force=False, hold=0.0
                )
    rows = [deletion_for_json(found, id_) for id_ in chosen]
    if as_json:
        print_json(
            {
                **scope.as_dict(),
                **outcome_for_json(outcome),
                "executed": execute and bool(chosen),
                "partitions": rows,
            }
        )
        return
    print_table(
        ["PARTITION", ">CHECKPOINT", "OWNER", ">AGE"],
        [
            (
                row["partition_id"],
                row["sequence_number"],
                row["owner_id"],
                duration(row["ownership_age"]),
            )
            for row in rows
        ],
        title=str(scope),
    )
    if owners and execute and chosen:
        typer.echo(f"released {len(chosen)}")
        return
    print_outcome(outcome, anything=bool(chosen))


def release(store: Any, scope: Scope, partition_ids: Sequence[str]) -> None:
    """Release partitions; one that was claimed meanwhile keeps its owner, as its etag changed."""
    rows = {row["partition_id"]: row for row in store.list_ownership(*scope)}
    store.claim_ownership(
        [{**rows[id_], "owner_id": RELEASED} for id_ in partition_ids if id_ in rows]
    )


def deletion_for_json(found: Group, partition_id: str) -> dict[str, Any]:
    """Return the rows of a partition for JSON."""
    ownership = found.ownerships.get(partition_id)
    row = found.checkpoints.get(partition_id)
    return {
        "partition_id": partition_id,
        "sequence_number": row and row.get("sequence_number"),
        "owner_id": ownership.owner_id if ownership else "",
        "ownership_age": ownership.age if ownership else None,
    }
