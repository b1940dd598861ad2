"""Wrong usage of a command: what the parser of options would show or accept by itself."""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperGroup

from eventhub_checkpoints._shared.secrets import masked

STATUSES = "Exit status: 0 done, 1 failed, 2 wrong usage."
"""End of the help of commands that refuse no active group."""
STATUSES_OF_CHANGES = (
    "Exit status: 0 done or shown, 1 failed, 2 wrong usage, 4 refused: the group is active."
)
STATUSES_OF_VERDICTS = "Exit status: 0 sound, 1 warning, 2 error or wrong usage, 3 unknown."


class Commands(TyperGroup):
    """Command group that masks a secret which a usage error would quote.

    It refuses an option that is named twice, of which the parser would use the last only.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Only Click's errors have a message; Typer 0.29 bundles its own copy of Click.
            if isinstance(message := getattr(error, "message", None), str):
                vars(error)["message"] = masked(message)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand that the words name, and those that are left."""
        name, command, left = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeated(ctx, command, left)
        return name, command, left


def refuse_repeated(ctx: Any, command: Any, words: list[str]) -> None:
    """Refuse an option with a value that is named more often than the command uses it.

    Raises:
        typer.BadParameter: there is one.
    """
    parser = command.make_parser(ctx)
    # Those of the context are the group's, whose options all come before the subcommand.
    parser.allow_interspersed_args = command.allow_interspersed_args
    parser.ignore_unknown_options = command.ignore_unknown_options
    try:
        _, _, order = parser.parse_args(list(words))
    except Exception:
        return
    for parameter, count in Counter(order).items():
        is_single = parameter.param_type_name == "option" and not parameter.multiple
        if is_single and not parameter.is_flag and count > 1:
            raise typer.BadParameter(
                f"it is named {count} times; this command takes it once", ctx, parameter
            )
