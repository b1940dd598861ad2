"""Options that are a duration."""

from typing import Any

import typer

from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.settings import SHORTEST_TIME
from eventhub_checkpoints.errors import ConfigurationError


def duration_option(*names: str, least: float = SHORTEST_TIME, **options: Any) -> Any:
    """Return an option whose value is a duration; the command receives seconds.

    Args:
        names: of the option; by default, the name of the parameter.
        least: the shortest duration that is accepted, in seconds.
        options: other arguments of `typer.Option`.
    """

    def parse(value: str | float) -> float:
        try:
            return parse_duration(value, "it", least=least)
        except ConfigurationError as error:
            # Typer replaces the message of a ValueError by one of its own.
            raise typer.BadParameter(str(error)) from None

    return typer.Option(*names, parser=parse, metavar="DURATION", **options)
