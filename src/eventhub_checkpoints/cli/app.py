"""The subcommands, one file each, under one name."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eventhub_checkpoints import __version__
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.cli.conform import conform
from eventhub_checkpoints.cli.demo.command import demo


class Commands(TyperGroup):
    """Masks a secret that a wrong command line has put where the usage error quotes it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Only Click's own errors have one; Typer 0.29 comes with its own copy of Click.
            if isinstance(said := getattr(error, "message", None), str):
                vars(error)["message"] = masked(said)
            raise


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # Joins the lines of a docstring into paragraphs.
    rich_markup_mode="markdown",
    # Its tracebacks show local variables, and those may hold credentials.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
# Its words go on as they are, `--help` too: the suite says what it takes, and says it once.
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(conform)


def print_version(asked: bool) -> None:
    """Print name and version and end, if that was asked for."""
    if asked:
        typer.echo(f"eventhub-checkpoints {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Durable positions for Azure Event Hubs consumers."""
