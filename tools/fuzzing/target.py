"""A target of fuzzing: a parser, the errors that it may raise, and inputs to begin with."""

import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventhub_checkpoints.errors import CheckpointStoreError

LONGEST = 1 << 14
"""Bytes of an input."""


class DifferenceError(AssertionError):
    """A value did not come back from its encoder and parser."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes:
        name: for the command line.
        parse: parses the input; it raises for what it refuses, and also where a value that it
            accepted does not come back.
        allowed: errors that are refusals, besides those of this package.
        corpus: valid inputs, and inputs that once were wrong.
    """

    name: str
    parse: Callable[[bytes], object]
    corpus: Sequence[bytes]
    allowed: tuple[type[Exception], ...] = ()

    def run(self, data: bytes) -> str:
        """Parse an input; return whether it was `accepted` or `refused`.

        Raises:
            Exception: a finding.
        """
        refusals: tuple[type[Exception], ...] = (CheckpointStoreError, *self.allowed)
        try:
            self.parse(data)
        except refusals:
            return "refused"
        return "accepted"


def place_of(error: BaseException) -> str:
    """Return the error's type and the last line of ours that it passed: one name for each fault."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [each for each in every if each.name != require_equal.__name__]
    own = [each for each in frames if "eventhub_checkpoints" in each.filename]
    frame = (own or frames)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}"


def require_equal(value: object, expected: object) -> None:
    """Require that a value came back unchanged.

    Raises:
        DifferenceError: it differs.
    """
    # By `repr`, which tells 1 from True and finds NaN equal to itself.
    if repr(value) != repr(expected):
        raise DifferenceError(f"{value!r:.300} came back as {expected!r:.300}")


def text_of(data: bytes) -> str:
    """Return an input as a text file is read, or a header is received."""
    return data.decode("utf-8", "replace")


def json_of(data: bytes) -> Any:
    """Return an input as JSON; it stands for values of a driver, of any type.

    Raises:
        NotJsonError: it is not.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise NotJsonError from None


class NotJsonError(CheckpointStoreError):
    """The input cannot stand for values."""


def samples(*values: object) -> list[bytes]:
    """Return inputs: bytes as they are, strings in UTF-8, anything else as JSON."""
    return [
        value
        if isinstance(value, bytes)
        else (value if isinstance(value, str) else json.dumps(value)).encode()
        for value in values
    ]
