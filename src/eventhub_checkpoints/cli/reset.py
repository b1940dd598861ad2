"""`ehcp reset`: change from where a group reads on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eventhub_checkpoints.cli.change import (
    Execute,
    Forced,
    Hold,
    Partitions,
    command_line,
    command_on,
    outcome_for_json,
    partition_list,
    print_outcome,
    reporting,
)
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.output import (
    Json,
    print_json,
    print_table,
    read_file,
    shown_path,
    working,
    write_file,
)
from eventhub_checkpoints.cli.status import MissingOption, warn_if_unknown
from eventhub_checkpoints.cli.target import ReadThrough, Target, on_target
from eventhub_checkpoints.operations.change import HOLD
from eventhub_checkpoints.operations.positions import read_kafka, to_kafka
from eventhub_checkpoints.operations.recorded_change import changing
from eventhub_checkpoints.operations.reset import (
    Goal,
    PartitionReset,
    changes_of,
    goal_of,
    plan_change,
)

KINDS = {
    "to_earliest": "earliest",
    "to_latest": "latest",
    "to_current": "current",
    "to_sequence_number": "sequence_number",
    "shift_by": "shift",
    "to_datetime": "datetime",
    "by_duration": "duration",
}
"""Kinds of goals by the options that name them; `from_file` has them by partition."""


@on_target
def reset(
    target: Target,
    *,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="Read all events that are retained.")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="Read only events that arrive from now on.")
    ] = False,
    to_current: Annotated[
        bool,
        typer.Option(
            "--to-current", help="Keep the position, within the retained events, offset included."
        ),
    ] = False,
    to_sequence_number: Annotated[
        int | None, number_option(least=0, help="Read event N next.")
    ] = None,
    shift_by: Annotated[
        int | None,
        number_option(help="Go N events forward, or back if N is negative."),
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Read what was enqueued then or later; UTC."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Read what was enqueued in this time before now."),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Lines of hub, partition and event to read next."),
    ] = None,
    partitions: Partitions = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the plan as CSV, as --from-file reads it."),
    ] = None,
    through: ReadThrough = None,
    missing: MissingOption = "earliest",
    execute: Execute = False,
    force: Forced = False,
    hold: Hold = HOLD,
    as_json: Json = False,
) -> None:
    """Change from where a group reads on; a number is the event that is read next.

    Pass exactly one of the targets. Without --execute, only the plan is shown. NEXT is the event
    that is read next, one after CHECKPOINT in lag; AGAIN and SKIPPED count events.
    """
    chosen = {
        "to_earliest": to_earliest or None,
        "to_latest": to_latest or None,
        "to_current": to_current or None,
        "to_sequence_number": to_sequence_number,
        "shift_by": shift_by,
        "to_datetime": to_datetime,
        "by_duration": by_duration,
        "from_file": from_file,
    }
    passed = [name for name, value in chosen.items() if value is not None]
    if len(passed) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
        raise typer.BadParameter(f"pass exactly one of {names}")
    [option] = passed
    ids = partition_list(partitions)
    name = command_line("reset", **{option: chosen[option]}, partitions=",".join(ids) or None)
    scope = target.scope
    goal: Goal
    if from_file is not None:
        goal = read_kafka(read_file(from_file), shown_path(from_file), scope)
    else:
        goal = goal_of(KINDS[option], str(chosen[option]))
    with reporting(target, executes=execute) as report, target.open_store() as store:
        command = command_on(target, store, name, report, execute=execute, force=force, hold=hold)
        with changing(command, scope) as change:
            warn_if_unknown(store, scope, has_rows=bool(change.group.partition_ids))
            with working("reading the hub"):
                plan = plan_change(
                    change,
                    goal,
                    target.address,
                    ids,
                    through=through,
                    missing=missing,
                    timeout=target.timeout,
                )
            if export:
                following = {each.partition_id: each.new for each in plan}
                write_file(export, to_kafka(scope.eventhub_name, following))
            targets = changes_of(plan, change.group)
            outcome = change.store(targets, [each.partition_id for each in plan])
        if as_json:
            rows = [plan_for_json(each) for each in plan]
            print_json({**scope.as_dict(), **outcome_for_json(outcome), "partitions": rows})
            return
        print_table(
            ["PARTITION", ">NEXT", ">NEW NEXT", ">AGAIN", ">SKIPPED", "NOTE"],
            [
                (
                    each.partition_id,
                    each.before and each.before.next,
                    each.new,
                    each.read_again,
                    each.skipped,
                    each.note,
                )
                for each in plan
            ],
            title=str(scope),
        )
        print_outcome(target, outcome, is_needed=bool(targets))


def plan_for_json(plan: PartitionReset) -> dict[str, Any]:
    """Return the plan of a partition for JSON."""
    return {
        "partition_id": plan.partition_id,
        "begin": plan.begin,
        "last": plan.last,
        "old": plan.before and plan.before.next,
        "new": plan.new,
        "read_again": plan.read_again,
        "skipped": plan.skipped,
        "sequence_number": plan.after.sequence_number,
        "offset": plan.after.offset,
        "note": plan.note,
    }
