"""File in which every process of a round records what it does, in order."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Deed = Literal[
    "listing",
    "listed",
    "claimed",
    "begun",
    "done",
    "failed",
    "raised",
    "closing",
    "releasing",
]
Seen = Literal["won", "other", "own", "stored", "frozen", "thawed", "recreated"]
Failed = Literal["survived", "succeeded"]
Streamed = Literal["read", "publishing", "published"]
What = (
    Deed
    | Seen
    | Failed
    | Streamed
    | Literal["closed", "saving", "saved", "refused", "unsaved", "uncommitted", "kill", "ended"]
)
NOTHING = -1
"""Position of a partition without a saved position."""
LOSES, STOPS, HANDS_OVER = range(3)
"""Reasons for which a partition is closed."""


class Line(NamedTuple):
    """Recorded action.

    Attributes:
        at: seconds of the machine's monotonic clock, which all processes share.
        who: the worker, or its parent.
        what: `listed` is recorded for every partition, with the position; `begun` after the
            library was notified, `done` before it is; `saving` before the store is called, and
            one of the three after it afterwards; `uncommitted` when a commit has failed, whichever
            partition it failed at; `closing` has one of the reasons as the number;
            `releasing` is recorded before the client releases a partition. `won` is a claim that
            the store has returned, `other` and `own` is the owner in a list. The parent records
            `kill` before it kills a worker, `ended` with the exit status, `frozen` and `thawed`,
            `stored` for a row of an ownership, and `recreated` when the hub's numbers begin again.
            Where a cluster may forget what it has confirmed, the parent records `survived` for the
            rows of each node that may succeed the dead primary, and `succeeded` for the node that
            did; `claim` has the node. A Spark stream records `read` in its sink, and `publishing`
            and `published` before and after its publisher calls the store.
        partition: its id, or `-`.
        claim: number of the worker's session of the partition.
        number: a sequence number.
        etag: of an ownership.
        before: etag that a claim had as its condition.
    """

    at: float
    who: str
    what: str
    partition: str
    claim: int
    number: int
    etag: str = "-"
    before: str = "-"


class Journal:
    """Appends lines; each is a single write, so that lines of several processes do not mix."""

    def __init__(self, path: Path, who: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._who = who

    def write(
        self,
        what: What,
        partition: str = "-",
        claim: int = 0,
        number: int = 0,
        *,
        etag: str = "-",
        before: str = "-",
    ) -> None:
        """Append a line; it survives the process once this has returned."""
        at = f"{time.monotonic():.6f}"
        line = f"{at} {self._who} {what} {partition} {claim} {number} {etag} {before}\n"
        os.write(self._file, line.encode())


class Reading:
    """Reads a growing journal.

    Attributes:
        lines: lines read so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.lines: list[Line] = []

    def more(self) -> Sequence[Line]:
        """Return the lines that were added since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, _, _ = file.read().rpartition(b"\n")
        if not whole:
            return []
        self._offset += len(whole) + 1
        found = [line_of(text) for text in whole.decode().split("\n")]
        self.lines += found
        return found


def line_of(text: str) -> Line:
    """Return the line of its written form."""
    at, who, what, partition, claim, number, etag, before = text.split()
    return Line(float(at), who, what, partition, int(claim), int(number), etag, before)
