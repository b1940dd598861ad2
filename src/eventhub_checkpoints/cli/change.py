"""Shared parts of the commands that change positions: options, the command, and output."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from azure.eventhub import CheckpointStore
from rich.progress import Progress

from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.output import error_console
from eventhub_checkpoints.cli.records import RecordFiles
from eventhub_checkpoints.cli.target import Target
from eventhub_checkpoints.operations.change import HOLD, GroupActiveError
from eventhub_checkpoints.operations.recorded_change import Command, Outcome
from eventhub_checkpoints.receive.position import parse_partitions
from eventhub_checkpoints.registry import shown

REFUSED = 4
"""Exit status if the group is active."""
DRY_RUN = "dry run: nothing was changed; pass --execute"

Execute = Annotated[
    bool, typer.Option("--execute", help="Make the change; without it, show the plan.")
]
Forced = Annotated[
    bool,
    typer.Option("--force", help="Take the partitions from running consumers."),
]
Hold = Annotated[
    float,
    duration_option(
        least=0,
        help="With --force: how long to hold the partitions. Must exceed the time in which the "
        "consumers notice the loss, 1.2 times their load_balancing_interval.",
    ),
]
Partitions = Annotated[
    str | None, typer.Option(metavar="0,3", help="Only these partitions. [default: all]")
]


@contextmanager
def exit_if_active() -> Iterator[None]:
    """Exit with status 4 if the group is active."""
    try:
        yield
    except GroupActiveError as error:
        typer.echo(f"eventhub-checkpoints: {error}", err=True)
        raise typer.Exit(REFUSED) from None


def partition_list(text: str | None) -> list[str]:
    """Return the value of `--partitions`; empty if it was not passed."""
    return [] if text is None else parse_partitions(text)


def command_line(name: str, **options: Any) -> str:
    """Return the command line for the record: a name, and the options that were passed."""
    shown_options = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}")
        for key, value in options.items()
        if value is not None and value is not False
    ]
    return " ".join([name, *shown_options])


def command_on(
    target: Target,
    store: CheckpointStore,
    name: str,
    *,
    execute: bool,
    force: bool = False,
    hold: float = HOLD,
) -> Command:
    """Return a command that changes positions, for the operator's terminal and journal.

    Args:
        target: has the store's name, and the time limits.
        store: the store.
        name: the command line for the record.
        execute: make the change; otherwise only plan it.
        force: take partitions from running consumers.
        hold: seconds for which they are held.
    """

    @contextmanager
    def progress(partitions: int) -> Iterator[Callable[[str], None]]:
        terminal = error_console()
        with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
            task = bar.add_task("changing", total=partitions)

            def step(partition_id: str) -> None:
                text = f"partition {partition_id}" if partition_id else f"holding for {hold:g} s"
                bar.update(task, advance=1 if partition_id else 0, description=text)

            yield step

    return Command(
        name=name,
        store=store,
        store_name=store_name(target),
        journal=RecordFiles(),
        executes=execute,
        force=force,
        hold=hold,
        expires_after=target.expires_after,
        timeout=target.timeout,
        progress=progress,
    )


def store_name(target: Target) -> str:
    """Return the name of the store for people, without secrets."""
    return "" if target.store is None else shown(target.store)


def print_outcome(outcome: Outcome | None, *, is_needed: bool = True) -> None:
    """Print what a command has done, and how to undo it."""
    if not is_needed:
        typer.echo("nothing to change")
    elif outcome is None:
        typer.echo(DRY_RUN)
    else:
        if outcome.late:
            typer.echo(f"{outcome.late} late checkpoints of running consumers were overwritten")
        record = outcome.record
        undo = f"ehcp undo {record.path}" if record.is_undo else "ehcp undo"
        typer.echo(f"done; {undo} restores the previous positions")


def outcome_for_json(outcome: Outcome | None) -> dict[str, Any]:
    """Return what a command has done for JSON."""
    return {
        "executed": outcome is not None,
        "record": str(outcome.record.path) if outcome else None,
        "late_checkpoints": outcome.late if outcome else 0,
    }
