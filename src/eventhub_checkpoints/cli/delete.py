"""`ehcp delete`: delete the rows of a group, or release the ownerships of dead consumers."""

from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.texts import duration
from eventhub_checkpoints.cli.change import (
    Execute,
    Partitions,
    command_line,
    command_on,
    outcome_for_json,
    partition_list,
    print_outcome,
    reporting,
)
from eventhub_checkpoints.cli.output import Json, print_json, print_table
from eventhub_checkpoints.cli.status import warn_if_unknown
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.operations.delete import delete_rows, release_dead
from eventhub_checkpoints.operations.groups import Group
from eventhub_checkpoints.operations.positions import MOVED, Position
from eventhub_checkpoints.operations.recorded_change import Outcome, changing


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
    name = command_line("delete", partitions=",".join(ids) or None)
    outcome: Outcome | None = None
    with reporting(target, executes=execute) as report, target.open_store() as store:
        command = command_on(target, store, name, report, execute=execute)
        with changing(command, scope) as change:
            warn_if_unknown(store, scope, has_rows=bool(change.group.partition_ids))
            if owners:
                chosen = release_dead(change, ids)
            else:
                chosen, outcome = delete_rows(change, ids)
        rows = [deletion_for_json(change.group, id_) for id_ in chosen]
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
                    MOVED if row["is_moved"] else row["sequence_number"],
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
        print_outcome(target, outcome, is_needed=bool(chosen))


def deletion_for_json(group: Group, partition_id: str) -> dict[str, Any]:
    """Return the rows of a partition for JSON."""
    ownership = group.ownerships.get(partition_id)
    position = Position.of(group.checkpoints.get(partition_id, {}))
    return {
        "partition_id": partition_id,
        "sequence_number": None if position.is_closed else position.sequence_number,
        "is_moved": position.is_closed,
        "owner_id": ownership.owner_id if ownership else "",
        "ownership_age": ownership.age if ownership else None,
    }
