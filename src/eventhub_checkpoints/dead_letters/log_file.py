"""File of dead letters: a log of lines of JSON, each a dead letter or a mark."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints.dead_letters.dead_letter import MALFORMED, DeadLetter, Mark
from eventhub_checkpoints.errors import ConfigurationError, StoreError


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append an object as a line, and return when it is on the disk.

    Processes may append at the same time: each line is one write to a file that is opened for
    appending, which the operating system does not interleave with others on a local disk.

    Raises:
        StoreError: it could not be written.
    """
    try:
        is_new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            line = f"{json.dumps(row)}\n".encode()
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end:
                os.lseek(descriptor, end - 1, os.SEEK_SET)
                if os.read(descriptor, 1) != b"\n":
                    # The disk was full during a write; that part of a line must stay separate.
                    line = b"\n" + line
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new and hasattr(os, "O_DIRECTORY"):
            sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"a dead letter could not be written to {path}: {reason}") from error


def sync_folder(folder: Path) -> None:
    """Make the name of a new file durable; Windows has no such call."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> tuple[list[DeadLetter | Mark], list[int]]:
    """Return the dead letters and marks of a file, and the numbers of lines that are neither.

    Raises:
        ConfigurationError: the file does not exist, or all of its lines are something else.
        StoreError: it could not be read.
    """
    entries: list[DeadLetter | Mark] = []
    others: list[int] = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    entries.append(read_entry(parse_json(line)))
                except MALFORMED:
                    others.append(number)
    except FileNotFoundError:
        raise ConfigurationError(f"the file {path} does not exist: check its name") from None
    except OSError as error:
        raise StoreError(f"{path} could not be read: {error.strerror}") from error
    if others and not entries:
        raise ConfigurationError(f"{path} is not a file of dead letters: it has other lines only")
    return entries, others


def read_entry(row: Any) -> DeadLetter | Mark:
    """Return the dead letter or the mark of a line.

    Raises:
        ValueError, TypeError, LookupError, AttributeError: it is neither.
    """
    if "redriven" in row or "discarded" in row:
        return Mark.from_dict(row)
    return DeadLetter.from_dict(row)
