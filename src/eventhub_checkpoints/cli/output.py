"""Files and output of the commands: tables for people, JSON for programs."""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.texts import duration
from eventhub_checkpoints.errors import ConfigurationError

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
WIDTH = 80
"""Columns of a table where the output is not a terminal."""
IS_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
COLOURS = {
    "OK": "green",
    "MOVED": "cyan",
    "WARN": "yellow",
    "UNOWNED": "yellow",
    "UNKNOWN": "magenta",
    "STALL": "red",
    "STOP": "red",
    "REWIND": "red",
    "LOST": "red",
    "GONE": "red",
    "WARNING": "yellow",
    "ERROR": "red",
}


def console() -> Console:
    """Return the console of standard output, of 80 columns where it is not a terminal."""
    default = Console(highlight=False)
    return default if default.is_terminal else Console(highlight=False, width=WIDTH)


def error_console() -> Console:
    """Return the console of standard error, for progress: standard output has results only.

    With `NO_COLOR`, nothing moves the cursor either.
    """
    return Console(stderr=True, force_terminal=False if os.environ.get("NO_COLOR") else None)


def working(what: str) -> Status:
    """Return a context that shows a spinner on standard error, if that is a terminal."""
    return error_console().status(what)


def print_json(value: Any) -> None:
    """Print a value as JSON: dataclasses as objects, sequences as arrays."""
    typer.echo(json.dumps(value, indent=2, default=plain))


def plain(value: Any) -> Any:
    """Convert a value that JSON does not have."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    return asdict(value)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table; a heading that begins with `>` is of a column of numbers."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        is_number = heading.startswith(">")
        table.add_column(
            heading.removeprefix(">"),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(shown, row))
    if title:
        # A title of rich's table would be wrapped at the width of its columns.
        console().print(title, style="italic", markup=False)
    console().print(table)


def shown_path(path: Path) -> str:
    """Return a path for a message, without secrets: a URL may have been passed by mistake."""
    if path == Path():  # also of an empty option
        return "the current folder"
    url = str(path).replace(":/", "://", 1)  # `Path` joins the slashes of a URL
    return quoted(url) if holds_secret(url) else str(path)


def read_file(path: Path) -> str:
    """Read a file of the operator.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigurationError(f"{shown_path(path)} cannot be read ({reason})") from None


def write_file(path: Path, text: str) -> None:
    """Write a file for the operator.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{shown_path(path)} cannot be written ({error.strerror})"
        ) from None


def ago(then: float) -> str:
    """Return how long ago a time was, given in seconds since the epoch."""
    return f"{duration(max(0.0, time.time() - then))} ago"


def shown_owner(owner_id: str) -> str:
    """Return an owner id for a row of many columns: of a UUID, as clients make it, the beginning.

    `describe --members` and JSON have all of it.
    """
    return f"{owner_id[:8]}..." if IS_UUID.fullmatch(owner_id) else owner_id


def shown(value: Any) -> str:
    """Return a cell of a table; `-` for what is unknown or does not exist."""
    if value is None or value == "":
        return "-"
    text = str(value)
    if isinstance(value, Enum) and text in COLOURS:
        return f"[{COLOURS[text]}]{text}[/]"
    return text.replace("[", r"\[")
