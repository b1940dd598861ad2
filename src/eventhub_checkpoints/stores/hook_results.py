"""Argument and result types of a backend's hooks, and conversion of the backend's times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from eventhub_checkpoints.records import Checkpoint, Ownership, Scope

Row = TypeVar("Row")


class Seen(Enum):
    """What is known of the stored checkpoint, if not its version."""

    ABSENT = "absent"
    UNKNOWN = "unknown"
    FORCE = "force"


ABSENT = Seen.ABSENT
"""No row may exist: create it, or return the existing one."""
UNKNOWN = Seen.UNKNOWN
"""Nothing is known. Treating it as `ABSENT` is always correct; a backend that can compare in the
same step may also overwrite a row whose sequence number is not higher.
"""
FORCE = Seen.FORCE
"""Overwrite whatever is stored."""


class OfficialFault(NamedTuple):
    """Row that is read here, and at which a list of an official store fails for the whole group."""

    partition_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """All rows of a scope.

    Attributes:
        rows: the rows that could be read, in any order.
        server_now: the backend's time when it answered, in the unit and on the clock of
            `last_modified_time`; None if the backend uses this process's clock.
        skipped: one sentence for each row that could not be read.
        official_faults: rows at which the official Python store fails. Empty where there is no
            official store of this kind.
    """

    rows: Sequence[Row]
    server_now: float | None = None
    skipped: Sequence[str] = ()
    official_faults: Sequence[OfficialFault] = ()


@dataclass(frozen=True, slots=True)
class ScopeRows:
    """Rows of a scope as they are stored, with what could not be read.

    Attributes:
        prefix: of the names of blobs; `""` if there is none.
    """

    scope: Scope
    ownerships: Listing[Ownership]
    checkpoints: Listing[Checkpoint]
    prefix: str = ""

    def __str__(self) -> str:
        """Return the names that the rows have in common."""
        return f"{self.prefix}/{self.scope}" if self.prefix else str(self.scope)


@dataclass(frozen=True, slots=True)
class Examination:
    """What a store shows of a consumer group for diagnosis.

    Attributes:
        rows: the rows of the group.
        spellings: rows of the same group under names in another case or with another prefix, which
            this store does not read.
        settings: settings of the storage that matter to checkpoints, by name: whether each is
            enabled; None where it cannot be read. Empty where a backend has none.
    """

    rows: ScopeRows
    spellings: Sequence[ScopeRows] = ()
    settings: Mapping[str, bool | None] = field(default_factory=dict)


class HistoryEntry(NamedTuple):
    """A checkpoint that is, or was, stored.

    Attributes:
        kind: `checkpoint`; `replaced`: a rewind has overwritten it; `rewind`: stored by force.
        writer: package and host that stored it.
    """

    checkpoint: Checkpoint
    kind: str
    writer: str


class Won(NamedTuple):
    """The claim was confirmed; `row` is the stored row."""

    row: Ownership


class Remembered(Won):
    """A win that the base class has already recorded; no backend returns it."""

    __slots__ = ()


class Lost(NamedTuple):
    """Another claim won; `stored` is its row if the backend gets it without another request."""

    stored: Ownership | None = None


class Written(NamedTuple):
    """The checkpoint is stored under `version`."""

    version: str


class Conflict(NamedTuple):
    """Nothing was written: another row is stored than the one that was seen, or none (None)."""

    stored: Checkpoint | None


def clock_skew(listing: Listing[Any], local_now: float) -> float:
    """Return the seconds to add to a backend's time, for this process's clock.

    The sum may be later than `local_now`, by an error of either clock: use `min`, because an age is
    never negative.
    """
    return 0.0 if listing.server_now is None else local_now - listing.server_now


def on_local_clock(listing: Listing[Ownership], local_now: float) -> list[tuple[Ownership, float]]:
    """Return the rows, each with the time at which it has the same age on this process's clock.

    The client compares `last_modified_time` with its own clock, so clock skew would make it take
    partitions over from live owners.
    """
    skew = clock_skew(listing, local_now)
    return [(row, min(local_now, row.last_modified_time + skew)) for row in listing.rows]
