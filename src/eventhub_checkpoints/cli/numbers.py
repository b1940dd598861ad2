"""Options that are a whole number."""

from typing import Any

import typer

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.receive.position import signed_number
from eventhub_checkpoints.records import MOST_INT64


def number_option(
    *names: str, least: int | None = None, most: int = MOST_INT64, **options: Any
) -> Any:
    """Return an option whose value is a whole number, written in digits.

    Args:
        names: of the option; by default, the name of the parameter.
        least: the smallest number that is accepted; None: also negative ones.
        most: the largest one.
        options: other arguments of `typer.Option`.
    """
    lowest = -MOST_INT64 if least is None else least
    expected = "a whole number" if least is None else f"a whole number from {least}"
    if most != MOST_INT64:
        expected += f" to {most}"

    def parse(value: str | int) -> int:
        number = signed_number(str(value))
        is_long = number is None and str(value).isascii() and str(value).isdigit()
        if is_long or (number is not None and number > most):
            raise typer.BadParameter(f"it is {quoted(value)}; expected at most {most}")
        if number is None or number < lowest:
            raise typer.BadParameter(f"it is {quoted(value)}; expected {expected}")
        return number

    return typer.Option(*names, parser=parse, **{"metavar": "N", **options})
