"""Commands that take positions elsewhere: `export`, `import` and `copy`."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.texts import counted
from eventhub_checkpoints.cli.change import (
    Execute,
    Hold,
    Partitions,
    change_group,
    outcome_for_json,
    partition_list,
    print_outcome,
    refusals,
    store_name,
    words,
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
from eventhub_checkpoints.cli.records import Record, interrupted, locked
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import HOLD, refuse_active
from eventhub_checkpoints.operations.groups import group, groups
from eventhub_checkpoints.operations.positions import (
    GroupPositions,
    Positions,
    is_kafka,
    positions_of,
    read_groups,
    read_kafka,
    read_positions,
    to_csv,
    to_json,
    to_kafka,
)
from eventhub_checkpoints.operations.reset import plan_reset
from eventhub_checkpoints.operations.transfer import Step, plan
from eventhub_checkpoints.records import Scope


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
        if all_groups:
            found = [GroupPositions(each.scope, positions_of(each)) for each in groups(store)]
        else:
            found = [GroupPositions(target.scope, read_positions(store, target.scope))]
    if chosen is Format.KAFKA:
        text = to_kafka(found[0].scope.eventhub_name, following(found[0].positions))
    else:
        text = to_json(found) if chosen is Format.JSON else to_csv(found)
    if file is None:
        typer.echo(text, nl=False)
        return
    write_file(file, text)
    count = sum(len(each.positions) for each in found)
    if as_json:
        print_json(
            {"file": shown_path(file), "format": chosen, "groups": len(found), "positions": count}
        )
    else:
        typer.echo(
            f"{counted(count, 'position')} of {counted(len(found), 'group')} written to "
            f"{shown_path(file)}",
            err=True,
        )


def following(positions: Positions) -> dict[str, int]:
    """Return the event read next of each partition.

    Raises:
        ConfigurationError: a position is closed, or has no sequence number.
    """
    found: dict[str, int] = {}
    for id_, position in positions.items():
        if position.next is None:
            reason = "is closed" if position.is_closed else "has no sequence number"
            raise ConfigurationError(
                f"the checkpoint of partition {id_} {reason}, so the format kafka cannot name the "
                "event that is read next; use json"
            )
        found[id_] = position.next
    return found


@dataclass(frozen=True, slots=True)
class Transfer:
    """Positions to store in a group, and what was done.

    Attributes:
        plan: decisions, by partition in numeric order.
        outcome: record and number of late checkpoints; None if nothing was stored.
    """

    scope: Scope
    plan: Sequence[Step]
    outcome: tuple[Record, int] | None = None

    @property
    def is_needed(self) -> bool:
        """Return whether a position is to be stored."""
        return any(each.action.writes for each in self.plan)

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            **self.scope.as_dict(),
            **outcome_for_json(self.outcome),
            "partitions": [
                {
                    "partition_id": each.partition_id,
                    "present": each.target and each.target.sequence_number,
                    "sequence_number": each.source.sequence_number,
                    "offset": each.source.offset,
                    "action": each.action,
                }
                for each in self.plan
            ],
        }


def store_positions(
    store: Any,
    target: Target,
    source: GroupPositions,
    command: str,
    partition_ids: Sequence[str],
    *,
    execute: bool,
    force: bool,
    hold: float,
) -> Transfer:
    """Store positions in a group where they are later than what it has, or plan it.

    Raises:
        GroupActiveError: the group has live members, and `force` is False.
        ConfigurationError: it is a group of this package's own rows, or there is no position of a
            partition.
        StoreError: the store failed.
    """
    scope, positions = source.scope, source.positions
    if scope.is_reserved:
        raise ConfigurationError(f"{scope} is not a consumer group: its rows are internal")
    if absent := [id_ for id_ in partition_ids if id_ not in positions]:
        raise ConfigurationError(f"there is no position of partition {absent[0]} to store")
    with locked(scope) if execute else nullcontext():
        found = group(store, scope, expires_after=target.expires_after)
        previous = interrupted(scope, command, store_name(target))
        if not force:
            refuse_active(found, own=previous.owner if previous else "")
        chosen = {id_: positions[id_] for id_ in partition_ids or positions}
        steps = plan(chosen, positions_of(found), force=force)
        targets = {each.partition_id: each.source for each in steps if each.action.writes}
        outcome = None
        if execute and targets:
            outcome = change_group(
                store,
                target,
                found,
                command,
                targets,
                force=force,
                hold=hold,
                previous=previous,
            )
    return Transfer(scope, steps, outcome)


def store_groups(
    store: Any,
    target: Target,
    sources: Sequence[GroupPositions],
    command: str,
    partition_ids: Sequence[str],
    *,
    execute: bool,
    force: bool,
    hold: float,
) -> list[Transfer]:
    """Store positions in several groups; raises as `store_positions`.

    All groups are planned before the first one is changed, so that a refusal changes nothing.
    """
    transfers: list[Transfer] = []
    for does_change in (False, True) if execute else (False,):
        transfers = [
            store_positions(
                store,
                target,
                source,
                command,
                partition_ids,
                execute=does_change,
                force=force,
                hold=hold,
            )
            for source in sources
        ]
    return transfers


def print_transfers(transfers: Sequence[Transfer], as_json: bool) -> None:
    """Print the plans of groups, and what was done."""
    if as_json:
        print_json([transfer.as_json() for transfer in transfers])
        return
    for transfer in transfers:
        print_table(
            ["PARTITION", ">NOW", ">NEW", "ACTION"],
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
        print_outcome(transfer.outcome, anything=transfer.is_needed)


@on_target
def import_positions(
    target: Target,
    *,
    file: Annotated[
        Path, typer.Argument(help="File of ehcp export, or CSV of kafka-consumer-groups.")
    ],
    all_groups: Annotated[
        bool, typer.Option("--all-groups", help="All groups of the file, under their names.")
    ] = False,
    partitions: Partitions = None,
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
    command = words(f"import {file.name}", partitions=",".join(ids) or None)
    with target.open_store() as store, refusals():
        if is_kafka(text):
            scope = target.scope
            numbers = read_kafka(text, shown_path(file), scope)
            found = group(store, scope, expires_after=target.expires_after)
            if not force:
                refuse_active(found)
            chosen = {id_: number for id_, number in numbers.items() if id_ in ids or not ids}
            with working("reading the hub"):
                plan = plan_reset(chosen, found, target.address, timeout=target.timeout)
            sources = [GroupPositions(scope, {each.partition_id: each.after for each in plan})]
        else:
            sources = chosen_groups(read_groups(text, shown_path(file)), target, all_groups, file)
        transfers = store_groups(
            store, target, sources, command, ids, execute=execute, force=force, hold=hold
        )
    print_transfers(transfers, as_json)


def chosen_groups(
    found: Sequence[GroupPositions], target: Target, all_groups: bool, file: Path
) -> list[GroupPositions]:
    """Return the groups of a file that are to be imported.

    Raises:
        ConfigurationError: the file does not have the group.
    """
    if all_groups:
        return [each for each in found if not each.scope.is_reserved]
    scope = target.scope
    chosen = [each for each in found if each.scope.folded == scope.folded]
    if not chosen:
        named = ", ".join(str(each.scope) for each in found[:3]) or "none"
        raise ConfigurationError(
            f"{shown_path(file)} has no positions of {scope}, but of: {named}; ehcp copy stores "
            "the positions of one group in another"
        )
    return [GroupPositions(scope, chosen[0].positions)]


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
    with target.open_store() as store, working("reading"):
        if all_groups:
            scopes = [each.scope for each in groups(store)]
            sources = [GroupPositions(scope, read_positions(store, scope)) for scope in scopes]
        else:
            if goal.scope.folded == target.scope.folded and goal.store == target.store:
                raise ConfigurationError(f"{target.scope} cannot be copied to itself")
            sources = [GroupPositions(goal.scope, read_positions(store, target.scope))]
            if not sources[0].positions:
                raise ConfigurationError(f"{target.scope} has no positions to copy")
    # What the record shows has no secret: a hub may be a connection string.
    command = words("copy", all_groups=all_groups, partitions=",".join(ids) or None)
    with goal.open_store() as store, refusals():
        transfers = store_groups(
            store, goal, sources, command, ids, execute=execute, force=force, hold=hold
        )
    print_transfers(transfers, as_json)
