"""`ehcp undo`: restore the positions before a change, from its record."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.paths import exists
from eventhub_checkpoints.cli.change import (
    Execute,
    Forced,
    Hold,
    command_on,
    outcome_for_json,
    print_outcome,
    reporting,
    store_name,
)
from eventhub_checkpoints.cli.output import Json, print_json, print_table
from eventhub_checkpoints.cli.records import RecordFiles, folder, read_record
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.change import HOLD
from eventhub_checkpoints.operations.journal import Record
from eventhub_checkpoints.operations.recorded_change import changing
from eventhub_checkpoints.operations.restore import record_to_undo
from eventhub_checkpoints.operations.restore import undo as restore


@on_target
def undo(
    target: Target,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Record of the change. [default: the newest of the group]")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the records, of --hub and --group if named.")
    ] = False,
    execute: Execute = False,
    force: Forced = False,
    hold: Hold = HOLD,
    as_json: Json = False,
) -> None:
    """Restore the positions before the last reset, delete, import or copy of a group.

    Positions that were changed since, for example by consumers, are only overwritten with --force,
    which also takes partitions from running consumers. Called again, it undoes the change before.
    """
    if show_list:
        print_records(target, as_json)
        return
    journal = RecordFiles()
    record = record_to_undo(
        journal,
        read_record(existing(file)) if file else None,
        None if file and target.hub is None else target.scope,
        store_name(target),
    )
    scope = record.scope
    with reporting(target, executes=execute) as report, target.open_store() as store:
        command = command_on(
            target,
            store,
            f"undo {record.path.name}",
            report,
            execute=execute,
            force=force,
            hold=hold,
        )
        with changing(command, scope) as change:
            done = restore(change, record)
        if as_json:
            rows = [asdict(each) for each in done.plan]
            print_json(
                {
                    **scope.as_dict(),
                    "undone": record_for_json(record),
                    **outcome_for_json(done.outcome),
                    "partitions": rows,
                }
            )
        else:
            print_table(
                ["PARTITION", ">NEXT", ">RESTORED NEXT", "STATE"],
                [
                    (
                        each.partition_id,
                        each.present and each.present.next,
                        each.former and each.former.next,
                        each.state,
                    )
                    for each in done.plan
                ],
                title=f"{scope}: {record.command}, {record.time}",
            )
        if done.refused:
            raise CheckpointStoreError(
                f"partitions {', '.join(done.refused)} were changed since; pass --force to "
                "overwrite that"
            )
        if not as_json:
            print_outcome(target, done.outcome, is_needed=done.is_needed)


def existing(file: Path) -> Path:
    """Return a file, which may be named as `undo --list` shows it."""
    return file if exists(file) or file.parent != Path() else folder() / file


def print_records(target: Target, as_json: bool) -> None:
    """Print the records of a group, or of all."""
    listed = [*RecordFiles().records(None if target.hub is None else target.scope)]
    if as_json:
        print_json([record_for_json(record) for record in listed])
        return
    print_table(
        ["FILE", "STATE", "COMMAND"],
        [
            (
                record.path.name,
                record.state,
                # The option would be another long file name.
                record.command.split(" ")[0] if record.is_undo else record.command,
            )
            for record in listed
        ],
        title=str(folder()),
    )


def record_for_json(record: Record) -> dict[str, Any]:
    """Return a record for JSON."""
    return {
        "file": str(record.path),
        **record.scope.as_dict(),
        "time": record.time,
        "command": record.command,
        "store": record.store,
        "state": record.state,
        "partitions": len(record.partition_ids),
    }
