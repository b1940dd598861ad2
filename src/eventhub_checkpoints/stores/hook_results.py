"""What a backend's hooks take and return, and times on the backend's clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from eventhub_checkpoints.records import Checkpoint, Ownership

Row = TypeVar("Row")


class Seen(Enum):
    """What is known of the stored checkpoint where it is not a version."""

    ABSENT = "absent"
    UNKNOWN = "unknown"
    FORCE = "force"


ABSENT = Seen.ABSENT
"""No row may exist: create it, or answer with the one that is there."""
UNKNOWN = Seen.UNKNOWN
"""Nothing is known. Treating it as `ABSENT` is always right; a backend that can compare in the
same step may also write over a row whose sequence number is not higher."""
FORCE = Seen.FORCE
"""Write whatever is stored."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """All rows of a scope.

    Attributes:
        rows: what could be read, in any order.
        server_now: the backend's clock when it answered, in the unit and on the clock of
            `last_modified_time`; None where the backend's clock is this process's own.
        skipped: one sentence for each row that could not be read.
    """

    rows: Sequence[Row]
    server_now: float | None = None
    skipped: Sequence[str] = ()


class Won(NamedTuple):
    """The claim was confirmed; `row` is what is stored now."""

    row: Ownership


class Remembered(Won):
    """A win that the base class has noted already; no backend answers with it."""

    __slots__ = ()


class Lost(NamedTuple):
    """Somebody else came first; `stored` is their row where the backend knows it for free."""

    stored: Ownership | None = None


class Written(NamedTuple):
    """The checkpoint is stored under `version`."""

    version: str


class Conflict(NamedTuple):
    """Nothing was written: the stored row is not the one that was seen; None if there is none."""

    stored: Checkpoint | None


def on_local_clock(listing: Listing[Ownership], local_now: float) -> list[Ownership]:
    """The rows, each as old on this process's clock as it is on the backend's.

    The client compares `last_modified_time` with its own clock, so a clock that is off would
    make it steal partitions that are in work. An age is never negative.
    """
    server_now = local_now if listing.server_now is None else listing.server_now
    return [
        replace(row, last_modified_time=local_now - max(server_now - row.last_modified_time, 0.0))
        for row in listing.rows
    ]
