"""A program that a test starts, reads the output of, and stops with a signal."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self


class Running:
    """A program, and what it has printed so far.

    Args:
        command: its words.
        folder: in which it runs.
        environment: variables beside those of this process.
        errors: where its standard error goes; by default it counts as printed.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        errors: IO[str] | None = None,
    ) -> None:
        self.printed = ""
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.STDOUT,
            text=True,
        )

    def until(self, condition: Callable[[str], object]) -> None:
        """Read on, line by line, until a condition of what it has printed is true."""
        assert self.process.stdout is not None
        while not condition(self.printed):
            line = self.process.stdout.readline()
            assert line, f"it has ended:\n{self.printed}"
            self.printed += line

    def end(self) -> int:
        """Read to the end; the exit status."""
        rest, _ = self.process.communicate()
        self.printed += rest
        return self.process.returncode

    def stop(self, number: int) -> int:
        """Send a signal; the exit status."""
        self.process.send_signal(number)
        return self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:  # waits, and closes what it has read from
            self.process.kill()
