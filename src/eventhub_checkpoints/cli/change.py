"""Shared parts of the commands that change positions: options, the command, and output."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer
from azure.eventhub import CheckpointStore
from rich.progress import Progress

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import some
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.ending import telling
from eventhub_checkpoints.cli.output import error_console
from eventhub_checkpoints.cli.records import RecordFiles
from eventhub_checkpoints.cli.target import Target
from eventhub_checkpoints.operations.change import HOLD
from eventhub_checkpoints.operations.journal import Record
from eventhub_checkpoints.operations.recorded_change import Command, Outcome
from eventhub_checkpoints.receive.position import parse_partitions
from eventhub_checkpoints.registry import shown

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


@dataclass
class Begun:
    """Change of a group that has begun.

    Attributes:
        record: for `ehcp undo`; its file is written before the first change.
        partition_ids: to change, in this order.
        changed: those that were.
        is_done: whether nothing of it is left to do.
    """

    record: Record
    partition_ids: Sequence[str]
    changed: list[str] = field(default_factory=list)
    is_done: bool = False

    def lines(self, undo: str) -> Iterator[str]:
        """Yield what was changed, what was not, and what takes it back or continues it.

        Args:
            undo: the command that takes it back.
        """
        left = [id_ for id_ in self.partition_ids if id_ not in self.changed]
        if not self.record.path.exists():
            yield f"nothing of {self.record.scope} was changed"
            return
        of_what = f"of {self.record.scope}"
        if self.changed:
            yield f"changed: partition {some(self.changed)} {of_what}"
        if left:
            yield f"perhaps changed: partition {left[0]} {of_what}"
        if left[1:]:
            yield f"not changed: partition {some(left[1:])} {of_what}"
        if not left and not self.is_done:
            yield (
                "not held to the end: a consumer that had not noticed the loss of a partition "
                "reads on from where it was"
            )
        yield f"to take it back: {undo}"
        if not self.is_done:
            yield "to continue: run the same command again"


class Report:
    """What a command has changed so far, in the groups of a target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._begun: list[Begun] = []

    @contextmanager
    def follow(
        self, hold: float, record: Record, partition_ids: Sequence[str]
    ) -> Iterator[Callable[[str], None]]:
        """Follow the change of a group, and show its progress; see `recorded_change.Progress`.

        Args:
            hold: seconds for which its partitions are held.
            record: of the change.
            partition_ids: in the order in which they are changed.
        """
        begun, terminal = Begun(record, partition_ids), error_console()
        self._begun.append(begun)
        with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
            task = bar.add_task("changing", total=len(partition_ids))

            def step(partition_id: str) -> None:
                if partition_id:
                    begun.changed.append(partition_id)
                text = f"partition {partition_id}" if partition_id else f"holding for {hold:g} s"
                bar.update(task, advance=1 if partition_id else 0, description=text)

            yield step
        begun.is_done = True

    def lines(self) -> Iterator[str]:
        """Yield what was changed, and what was not; nothing if no change has begun."""
        for begun in self._begun:
            yield from begun.lines(undo_line(self._target, begun.record))


def undo_line(target: Target, record: Record) -> str:
    """Return the command that shows what an undo of a change would do."""
    return as_typed(f"undo {shlex.quote(record.path.name)}{target.options_for(record.scope)}")


@contextmanager
def reporting(target: Target, *, executes: bool) -> Iterator[Report]:
    """Say what a command has changed in groups of a target if it ends early; see `telling`."""
    report = Report(target)
    with telling(report.lines, executes=executes):
        yield report


def partition_list(text: str | None) -> list[str]:
    """Return the value of `--partitions`; empty if it was not passed."""
    return [] if text is None else parse_partitions(text, "--partitions")


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
    report: Report,
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
        report: follows what is changed.
        execute: make the change; otherwise only plan it.
        force: take partitions from running consumers.
        hold: seconds for which they are held.
    """
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
        progress=partial(report.follow, hold if force else 0.0),
    )


def store_name(target: Target) -> str:
    """Return the name of the store for people, without secrets.

    Raises:
        ConfigurationError: none is named.
    """
    return shown(target.named_store)


def print_outcome(target: Target, outcome: Outcome | None, *, is_needed: bool = True) -> None:
    """Print what a command has done, and how to undo it."""
    if not is_needed:
        typer.echo("nothing to change")
    elif outcome is None:
        typer.echo(DRY_RUN)
    else:
        if outcome.late:
            typer.echo(f"{outcome.late} late checkpoints of running consumers were overwritten")
        typer.echo(f"done; to take it back: {undo_line(target, outcome.record)}")


def outcome_for_json(outcome: Outcome | None) -> dict[str, Any]:
    """Return what a command has done for JSON."""
    return {
        "executed": outcome is not None,
        "record": str(outcome.record.path) if outcome else None,
        "late_checkpoints": outcome.late if outcome else 0,
    }
