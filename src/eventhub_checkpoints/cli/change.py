"""Shared parts of the commands that change positions: options, the recorded change, and output."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.progress import Progress

from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.output import error_console
from eventhub_checkpoints.cli.records import STARTED, Record, finished, new_record
from eventhub_checkpoints.cli.target import Target
from eventhub_checkpoints.operations.change import (
    Force,
    GroupActiveError,
    Targets,
    change_positions,
)
from eventhub_checkpoints.operations.groups import Group
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.restore import positions_before
from eventhub_checkpoints.receive.position import checked_partitions
from eventhub_checkpoints.registry import shown

REFUSED = 4
"""Exit status where the group is active."""
DRY_RUN = "dry run: nothing was changed; pass --execute"

Execute = Annotated[bool, typer.Option("--execute", help="Do it; without, only show the plan.")]
Forced = Annotated[
    bool,
    typer.Option("--force", help="Take the partitions from running consumers."),
]
Hold = Annotated[
    float,
    duration_option(
        least=0,
        help="With --force: how long to hold the partitions. More than the consumers need to "
        "notice the loss, which is their load_balancing_interval and a fifth.",
    ),
]
Partitions = Annotated[
    str | None, typer.Option(metavar="0,3", help="Only these partitions. [default: all]")
]


@contextmanager
def refusals() -> Iterator[None]:
    """Exit with status 4 where the group is active."""
    try:
        yield
    except GroupActiveError as error:
        typer.echo(f"eventhub-checkpoints: {error}", err=True)
        raise typer.Exit(REFUSED) from None


def partition_list(text: str | None) -> list[str]:
    """Return the value of `--partitions`; empty if it was not passed."""
    return [] if text is None else checked_partitions([id_.strip() for id_ in text.split(",")])


def words(name: str, **options: Any) -> str:
    """Return a command as it is recorded, with the options that were passed."""
    shown_options = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}")
        for key, value in options.items()
        if value is not None and value is not False
    ]
    return " ".join([name, *shown_options])


def change_group(
    store: Any,
    target: Target,
    found: Group,
    command: str,
    targets: Targets,
    *,
    force: bool,
    hold: float,
    previous: Record | None = None,
) -> tuple[Record, int]:
    """Store positions of a group, with a record for `ehcp undo`.

    Args:
        store: the store.
        target: names the store, and the time for taking partitions.
        found: the group, which must not be active unless `force`.
        command: for the record.
        targets: what to store.
        force: take partitions from running consumers.
        hold: seconds for which they are held.
        previous: record of the same command, if that was interrupted; it is continued.

    Returns:
        The record, and the number of late checkpoints that were overwritten.
    """
    scope = found.scope
    record = previous or new_record(scope, command, store_name(target))
    forced = None
    if found.members:
        # Without --force, only claims of the interrupted command are left, and are released.
        forced = Force(record.owner, hold if force else 0.0, target.timeout)

    def keep(present: Mapping[str, Position]) -> None:
        nonlocal record
        before = {**present, **positions_before(record.former, record.written, present)}
        ids = record.partition_ids | {*targets}
        record = replace(
            record,
            former={id_: each for id_ in ids if (each := before.get(id_)) is not None},
            written={**record.written, **{id_: each for id_, each in targets.items() if each}},
            state=STARTED,
        )
        record.save()

    terminal = error_console()
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task("changing", total=len(targets))

        def step(partition_id: str) -> None:
            name = f"partition {partition_id}" if partition_id else f"holding for {hold:g} s"
            bar.update(task, advance=1 if partition_id else 0, description=name)

        late = change_positions(store, scope, targets, keep=keep, force=forced, progress=step)
    return finished(record), late


def store_name(target: Target) -> str:
    """Return the name of the store for people, without secrets."""
    return "" if target.store is None else shown(target.store)


def print_outcome(outcome: tuple[Record, int] | None, *, anything: bool = True) -> None:
    """Print what a command has done, and how to undo it."""
    if not anything:
        typer.echo("nothing to change")
    elif outcome is None:
        typer.echo(DRY_RUN)
    else:
        record, late = outcome
        if late:
            typer.echo(f"{late} late checkpoints of running consumers were overwritten")
        way = f"ehcp undo {record.path}" if record.is_undo else "ehcp undo"
        typer.echo(f"done; {way} restores the positions before")


def outcome_for_json(outcome: tuple[Record, int] | None) -> dict[str, Any]:
    """Return what a command has done for JSON."""
    return {
        "executed": outcome is not None,
        "record": str(outcome[0].path) if outcome else None,
        "late_checkpoints": outcome[1] if outcome else 0,
    }
