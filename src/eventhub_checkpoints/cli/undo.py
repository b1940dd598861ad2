"""`ehcp undo`: restore the positions before a change, from its record."""

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.cli.change import (
    Execute,
    Forced,
    Hold,
    change_group,
    outcome_for_json,
    print_outcome,
    refusals,
    store_name,
)
from eventhub_checkpoints.cli.output import Json, print_json, print_table
from eventhub_checkpoints.cli.records import (
    STARTED,
    UNDONE,
    Record,
    finished,
    folder,
    interrupted,
    locked,
    newest_change,
    read_record,
    records,
)
from eventhub_checkpoints.cli.target import Target, on_target
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.change import HOLD, refuse_active
from eventhub_checkpoints.operations.groups import group
from eventhub_checkpoints.operations.positions import positions_of
from eventhub_checkpoints.operations.restore import UndoState, plan_undo


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
    record = (
        read_record(existing(file)) if file else newest_change(target.scope, store_name(target))
    )
    if record is None:
        raise ConfigurationError(
            f"there is no record of a change of {target.scope} in {store_name(target)}; ehcp undo "
            "--list shows those there are"
        )
    check_record(record, target)
    scope = record.scope
    command = f"undo {record.path.name}"
    with target.open_store() as store, refusals(), locked(scope) if execute else nullcontext():
        found = group(store, scope, expires_after=target.expires_after)
        previous = interrupted(scope, command, record.store)
        if not force:
            own = record.owner if record.state == STARTED else ""
            refuse_active(found, own=previous.owner if previous else own)
        present = positions_of(found)
        plan = plan_undo(record.former, record.written, present)
        changed = [each.partition_id for each in plan if each.state is UndoState.CHANGED]
        targets = {
            each.partition_id: each.former for each in plan if each.state is not UndoState.UNCHANGED
        }
        outcome = None
        if execute and targets and (force or not changed):
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
        if execute and (outcome or not targets):
            finished(record, UNDONE)
    if as_json:
        rows = [asdict(each) for each in plan]
        print_json(
            {
                **scope.as_dict(),
                "undone": record.as_json(),
                **outcome_for_json(outcome),
                "partitions": rows,
            }
        )
    else:
        print_table(
            ["PARTITION", ">NOW", ">RESTORED", "STATE"],
            [
                (
                    each.partition_id,
                    each.present and each.present.next,
                    each.former and each.former.next,
                    each.state,
                )
                for each in plan
            ],
            title=f"{scope}: {record.command}, {record.time}",
        )
    if changed and not force:
        raise ConfigurationError(
            f"partitions {', '.join(changed)} were changed since; pass --force to overwrite that"
        )
    if not as_json:
        print_outcome(outcome, anything=bool(targets))


def existing(file: Path) -> Path:
    """Return a file, which may be named as `undo --list` shows it."""
    return file if file.exists() or file.parent != Path() else folder() / file


def check_record(record: Record, target: Target) -> None:
    """Check that a record is of the store, hub and group of a command.

    Raises:
        ConfigurationError: it is of another one.
    """
    if target.hub is not None and target.scope.folded != record.scope.folded:
        raise ConfigurationError(
            f"{record.path} is of {record.scope}, and the command names {target.scope}"
        )
    if record.store != store_name(target):
        raise ConfigurationError(
            f"{record.path} is of store {quoted(record.store)}, and the command names "
            f"{quoted(store_name(target))}; ehcp import stores its positions there"
        )


def print_records(target: Target, as_json: bool) -> None:
    """Print the records of a group, or of all."""
    found = [*records(None if target.hub is None else target.scope)]
    if as_json:
        print_json([record.as_json() for record in found])
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
            for record in found
        ],
        title=str(folder()),
    )
