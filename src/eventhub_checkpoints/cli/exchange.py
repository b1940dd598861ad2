"""Commands that take positions elsewhere: `export`, `import` and `copy`."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.cli.change import (
    Execute,
    Hold,
    Partitions,
    command_line,
    command_on,
    outcome_for_json,
    partition_list,
    print_outcome,
    reporting,
)
from eventhub_checkpoints.cli.output import (
    Json,
    print_json,
    print_table,
    read_file,
    shown_path,
    working,
    write_file,
)
from eventhub_checkpoints.cli.status import warn_if_unknown
from eventhub_checkpoints.cli.target import ReadThrough, Target, on_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import HOLD
from eventhub_checkpoints.operations.exchange import (
    Transfer,
    groups_of_file,
    positions_at_numbers,
    positions_for,
    positions_in,
    store_positions,
)
from eventhub_checkpoints.operations.positions import (
    following,
    is_kafka,
    read_groups,
    read_kafka,
    to_csv,
    to_json,
    to_kafka,
)


class Format(StrEnum):
    """Format of a file of positions."""

    JSON = "json"
    CSV = "csv"
    KAFKA = "kafka"


AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups of the store.")]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--force", help="Overwrite later positions too, and take partitions from consumers."
    ),
]


@on_target
def export(
    target: Target,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="File to write. [default: standard output]")
    ] = None,
    kind: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="`kafka`: the CSV of kafka-consumer-groups. [default: by the file's name, else "
            "json]",
        ),
    ] = None,
    all_groups: AllGroups = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Without a file, `--format json`; with one, print what was written as JSON.",
        ),
    ] = False,
) -> None:
    """Export the positions of a group.

    JSON and CSV name the last processed event, as a checkpoint does. The format of
    kafka-consumer-groups names the event that is read next, and has no offsets.
    """
    if as_json and file is None and kind not in (None, Format.JSON):
        raise typer.BadParameter(f"--json and --format {kind}: pass one of them, or a file")
    by_name = Format.CSV if file and file.suffix.lower() == ".csv" else Format.JSON
    chosen = kind or by_name
    if all_groups and chosen is Format.KAFKA:
        raise ConfigurationError("the format kafka holds one group; leave out --all-groups")
    with target.open_store() as store, working("reading"):
        exported = positions_in(store, None if all_groups else target.scope)
        if not all_groups:
            has_positions = bool(exported[0].positions)
            warn_if_unknown(store, target.scope, has_rows=has_positions, what="positions")
    if chosen is Format.KAFKA:
        text = to_kafka(exported[0].scope.eventhub_name, following(exported[0].positions))
    else:
        text = to_json(exported) if chosen is Format.JSON else to_csv(exported)
    if file is None:
        typer.echo(text, nl=False)
        return
    write_file(file, text)
    count = sum(len(each.positions) for each in exported)
    if as_json:
        print_json(
            {
                "file": shown_path(file),
                "format": chosen,
                "groups": len(exported),
                "positions": count,
            }
        )
    else:
        typer.echo(
            f"{counted(count, 'position')} of {counted(len(exported), 'group')} written to "
            f"{shown_path(file)}",
            err=True,
        )


def transfer_for_json(transfer: Transfer) -> dict[str, Any]:
    """Return what is stored in a group, and what was done, for JSON."""
    return {
        **transfer.scope.as_dict(),
        **outcome_for_json(transfer.outcome),
        "partitions": [
            {
                "partition_id": each.partition_id,
                "present": each.target and each.target.sequence_number,
                "sequence_number": each.source.sequence_number,
                "offset": each.source.offset,
                "action": each.action,
            }
            for each in transfer.plan
        ],
    }


def print_transfers(target: Target, transfers: Sequence[Transfer], as_json: bool) -> None:
    """Print the plans of groups, and what was done."""
    if as_json:
        print_json([transfer_for_json(transfer) for transfer in transfers])
        return
    for transfer in transfers:
        print_table(
            ["PARTITION", ">NEXT", ">NEW NEXT", "ACTION"],
            [
                (
                    each.partition_id,
                    each.target and each.target.next,
                    each.source.next,
                    each.action,
                )
                for each in transfer.plan
            ],
            title=str(transfer.scope),
        )
        print_outcome(target, transfer.outcome, is_needed=transfer.is_needed)


@on_target
def import_positions(
    target: Target,
    *,
    file: Annotated[
        Path, typer.Argument(help="File that export wrote, or CSV of kafka-consumer-groups.")
    ],
    all_groups: Annotated[
        bool, typer.Option("--all-groups", help="All groups of the file, under their names.")
    ] = False,
    partitions: Partitions = None,
    through: ReadThrough = None,
    execute: Execute = False,
    force: Overwrite = False,
    hold: Hold = HOLD,
    as_json: Json = False,
) -> None:
    """Store positions from a file; a later position is kept unless --force is passed.

    Of a file with several groups, the one that --hub and --group name is imported. For the CSV of
    kafka-consumer-groups, the hub is read, as by reset --from-file.
    """
    text, ids = read_file(file), partition_list(partitions)
    # The file may change, or another one may be in its place; its name identifies the command.
    name = command_line(f"import {file.name}", partitions=",".join(ids) or None)
    with reporting(target, executes=execute) as report, target.open_store() as store:
        command = command_on(target, store, name, report, execute=execute, force=force, hold=hold)
        if is_kafka(text):
            numbers = read_kafka(text, shown_path(file), target.scope)
            with working("reading the hub"):
                sources = positions_at_numbers(
                    command,
                    target.address,
                    numbers,
                    ids,
                    through=through,
                    timeout=target.timeout,
                )
        else:
            scope = None if all_groups else target.scope
            sources = groups_of_file(read_groups(text, shown_path(file)), scope, shown_path(file))
        transfers = store_positions(command, sources, ids)
        print_transfers(target, transfers, as_json)


@on_target
def copy(
    target: Target,
    *,
    to_store: Annotated[
        str | None, typer.Option(metavar="URL", help="Store to copy to. [default: the same]")
    ] = None,
    to_hub: Annotated[
        str | None,
        typer.Option(metavar="HUB", help="Hub to copy to, as --hub. [default: the same]"),
    ] = None,
    to_group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Group to copy to. [default: the same]")
    ] = None,
    all_groups: AllGroups = False,
    partitions: Partitions = None,
    execute: Execute = False,
    force: Overwrite = False,
    hold: Hold = HOLD,
    as_json: Json = False,
) -> None:
    """Copy positions to another store, hub or group; a later position is kept without --force.

    Ownerships are not copied, and the source is not changed. Another hub must have the same events
    with the same sequence numbers, as in a namespace that was paired or replicated.
    """
    if not (to_store or to_hub or to_group):
        raise typer.BadParameter("pass --to-store, --to-hub or --to-group")
    if all_groups and (to_hub or to_group or partitions):
        raise typer.BadParameter("--all-groups goes with --to-store only")
    goal = replace(
        target,
        store=to_store or target.store,
        hub=to_hub or target.hub,
        group=to_group or target.group,
    )
    ids = partition_list(partitions)
    # What the record shows has no secret: a hub may be a connection string.
    name = command_line("copy", all_groups=all_groups, partitions=",".join(ids) or None)
    with reporting(goal, executes=execute) as report:
        with target.open_store() as store, working("reading"):
            if all_groups:
                sources = positions_in(store, None)
            else:
                if goal.has_store_of(target) and goal.scope.folded == target.scope.folded:
                    raise ConfigurationError(f"{target.scope} cannot be copied to itself")
                sources = positions_for(store, target.scope, goal.scope)
        with goal.open_store() as store:
            command = command_on(goal, store, name, report, execute=execute, force=force, hold=hold)
            transfers = store_positions(command, sources, ids)
            print_transfers(goal, transfers, as_json)
