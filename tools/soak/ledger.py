"""Which events of a group were processed, how many of them twice, and which are lost."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path


class Ledger:
    """Counts what the consumers of one group have processed; its memory does not grow.

    Args:
        paths: the files in which the consumers record it, a line for each batch: the partition
            and its first and last sequence number.

    Attributes:
        events: number of events that were processed at least once.
        twice: number of times that an event was processed again.
    """

    def __init__(self, *paths: Path) -> None:
        self.events = self.twice = 0
        self._offsets = dict.fromkeys(paths, 0)
        self._next: dict[str, int] = defaultdict(int)
        self._ahead: dict[str, set[int]] = defaultdict(set)

    def read(self) -> None:
        """Count what was recorded since the last call."""
        for path, offset in self._offsets.items():
            with path.open("rb") as file:
                file.seek(offset)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._offsets[path] = offset + len(whole) + len(newline)
            for line in whole.decode().splitlines():
                partition, first, last = line.split()
                self._count(partition, range(int(first), int(last) + 1))

    def _count(self, partition: str, numbers: range) -> None:
        ahead = self._ahead[partition]
        for number in numbers:
            if number < self._next[partition] or number in ahead:
                self.twice += 1
            else:
                self.events += 1
                ahead.add(number)
        while self._next[partition] in ahead:
            ahead.remove(self._next[partition])
            self._next[partition] += 1

    def missing(self, ends: Mapping[str, int]) -> int:
        """Return the number of events not processed yet.

        Args:
            ends: the number of events that were published, by partition.
        """
        return sum(ends.values()) - self.events
