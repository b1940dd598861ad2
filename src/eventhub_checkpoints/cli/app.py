"""Typer application: the commands, of which those on groups have modules of their own."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from eventhub_checkpoints import __version__
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.cli import dead_letters, doctor, exchange, peek, status, transfer
from eventhub_checkpoints.cli.delete import delete
from eventhub_checkpoints.cli.demo.command import demo
from eventhub_checkpoints.cli.history import history
from eventhub_checkpoints.cli.reset import reset
from eventhub_checkpoints.cli.serve.command import serve
from eventhub_checkpoints.cli.ui import ui
from eventhub_checkpoints.cli.undo import undo
from eventhub_checkpoints.cli.usage import (
    STATUSES,
    STATUSES_OF_CHANGES,
    STATUSES_OF_VERDICTS,
    Commands,
)

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    epilog="Exit status of most commands: 0 done, 1 failed, 2 wrong usage, 4 refused because the "
    "group is active. The help of check and doctor names theirs.",
    # Markdown joins the lines of a docstring into paragraphs.
    rich_markup_mode="markdown",
    # Typer's tracebacks show local variables, which may contain credentials.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("groups", epilog=STATUSES)(status.list_groups)
app.command(epilog=STATUSES)(status.describe)
app.command("lag", epilog=STATUSES)(status.print_lag)
app.command(epilog=STATUSES_OF_VERDICTS)(status.check)
app.command(epilog=STATUSES_OF_CHANGES)(reset)
app.command(epilog=STATUSES_OF_CHANGES)(undo)
app.command(epilog=STATUSES)(history)
app.command(epilog=STATUSES_OF_CHANGES)(delete)
app.command(epilog=STATUSES)(exchange.export)
app.command("import", epilog=STATUSES_OF_CHANGES)(exchange.import_positions)
app.command(epilog=STATUSES_OF_CHANGES)(exchange.copy)
app.command(epilog=STATUSES_OF_VERDICTS)(doctor.doctor)
app.add_typer(dead_letters.app, name="dead-letters", epilog=STATUSES)
app.command(epilog=STATUSES)(peek.peek)
app.command("at", epilog=STATUSES)(peek.print_positions)
app.command(epilog=STATUSES)(transfer.mirror)
app.command(epilog=STATUSES_OF_CHANGES)(transfer.move)
app.command(epilog=STATUSES)(transfer.migrate)
app.command(epilog=STATUSES)(serve)
app.command(epilog=STATUSES)(ui)
app.command()(demo)


# Arguments are passed on unchanged, also `--help`, because the suite defines the options.
@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def conform(context: typer.Context) -> None:
    """Run every check of the contract on the store that a URL names.

    The same as python -m eventhub_checkpoints.conformance, with the same options.
    """
    # Imported here, because the suite is slow to import and other commands do not need it.
    from eventhub_checkpoints.conformance.__main__ import main

    # As with `python -m`; sys.path of an installed script starts with the script's folder.
    sys.path.insert(0, str(Path.cwd()))
    raise typer.Exit(main(context.args, as_typed("conform")))


def print_version(is_requested: bool) -> None:
    """Print name and version and exit, if requested."""
    if is_requested:
        typer.echo(f"eventhub-checkpoints {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Durable positions for Azure Event Hubs consumers."""
