"""Log of a program's work, in a file that survives a `kill -9` of the program.

A line is written after the work and before the checkpoint, unbuffered: the kernel keeps what was
written. So the demo counts what happened, not what a dying process remembers.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


class JournalWriter:
    """Writer of a journal; writes to standard output if there is no path."""

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = 1 if path is None else os.open(path, flags, 0o600)

    def took(self, partition: str) -> None:
        """Record that the program holds a partition."""
        self._write(f"took {partition}\n")

    def left(self, partition: str) -> None:
        """Record that the program no longer holds a partition."""
        self._write(f"left {partition}\n")

    def processed(self, partition: str, numbers: Iterable[int]) -> None:
        """Record processed events by sequence number."""
        self._write("".join(f"event {partition} {number}\n" for number in numbers))

    def saved(self, partition: str, number: int) -> None:
        """Record that the store has confirmed a checkpoint."""
        self._write(f"saved {partition} {number}\n")

    def _write(self, lines: str) -> None:
        left = lines.encode()
        while left:
            left = left[os.write(self._file, left) :]


class JournalReader:
    """Incremental reader of a growing journal.

    Attributes:
        events: sequence numbers by partition, in the order of processing, repetitions included.
        saved: the highest confirmed checkpoint by partition.
        held: partitions taken and not left.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: dict[str, list[int]] = defaultdict(list)
        self.saved: dict[str, int] = {}
        self.held: set[str] = set()
        self._position = 0

    def read(self) -> list[tuple[str, int]]:
        """Read the added lines; return the new events as partition and sequence number.

        An incomplete line is left for the next call.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._position)
            whole = file.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        self._position += len(whole)
        lines = [line.split() for line in whole.decode().splitlines()]
        return [event for words in lines if (event := self._take(words)) is not None]

    def _take(self, words: list[str]) -> tuple[str, int] | None:
        match words:
            case ["event", partition, number]:
                self.events[partition].append(int(number))
                return partition, int(number)
            case ["saved", partition, number]:
                self.saved[partition] = max(int(number), self.saved.get(partition, -1))
            case ["took", partition]:
                self.held.add(partition)
            case ["left", partition]:
                self.held.discard(partition)
            case _:
                raise ValueError(f"{self.path} has a line of no meaning: {' '.join(words)}")
        return None

    @property
    def count(self) -> int:
        """Number of processed events, repetitions included."""
        return sum(map(len, self.events.values()))
