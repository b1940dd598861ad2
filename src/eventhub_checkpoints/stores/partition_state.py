"""State that one store keeps for each partition.

`Lease` is the lease of an ownership (G2), `CheckpointGuard` protects a checkpoint against going
back (G3), and `PartitionStates` holds both for every partition that the store has dealt with.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eventhub_checkpoints.records import RELEASED, Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.hook_results import Seen

REMEMBERED_ETAGS = 32


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim from the time it was won until it is lost or released.

    Attributes:
        owner_id: owner that holds the partition through this store; `""` if none.
        taken: whether the partition was newly claimed, and its first list since then is pending.
        ever: whether this store has ever held the partition.
        confirmed: the row as the server last confirmed it, its time on this process's clock.
        winner: owner that won `etags`.
        etags: etags won in an unbroken series of claims, the newest last. A late release may use
            the newest, but must not undo a newer claim of the same client.
    """

    owner_id: str = RELEASED
    taken: bool = False
    ever: bool = False
    confirmed: Ownership | None = None
    winner: str = RELEASED
    etags: tuple[str, ...] = ()

    def won(self, row: Ownership, previous_etag: str | None) -> "Lease":
        """Return the lease after a confirmed claim, renewal or release over `previous_etag`."""
        if row.owner_id == RELEASED:
            return Lease(ever=self.ever, confirmed=row)
        goes_on = row.owner_id == self.winner and previous_etag in self.etags
        return Lease(
            owner_id=row.owner_id,
            taken=self.taken or row.owner_id != self.owner_id,
            ever=True,
            confirmed=row,
            winner=row.owner_id,
            etags=(*(self.etags if goes_on else ()), row.etag)[-REMEMBERED_ETAGS:],
        )

    def settled(self) -> "Lease":
        """Return the lease after the first list that follows a new claim."""
        return replace(self, taken=False)

    def lost(self) -> "Lease":
        """Return the lease after the partition was lost."""
        return replace(self, owner_id=RELEASED, taken=False, confirmed=None)

    def listed(self, row: Ownership | None) -> "Lease":
        """Return the lease after a list of ownerships; `row` is None if there is none."""
        if row is None or row.owner_id != self.owner_id:
            return replace(self.lost(), confirmed=row)
        return replace(self, confirmed=row)

    def has_won(self, etag: str | None) -> bool:
        """Return whether the etag was won in this series of claims."""
        return etag in self.etags

    def newer_etag(self, etag: str | None) -> str | None:
        """Return the newest etag of the series that includes this one; None if it is the newest."""
        if etag not in self.etags or self.etags[-1] == etag:
            return None
        return self.etags[-1]

    def renewed_by(self, owner_id: str, etag: str | None) -> Ownership | None:
        """Return the confirmed row if a claim by this owner with this etag renews it."""
        row = self.confirmed
        if row is None or not owner_id or (row.owner_id, row.etag) != (owner_id, etag):
            return None
        return row


REMEMBERED_WRITES = 8


@dataclass(frozen=True, slots=True)
class CheckpointGuard:
    """Knowledge of one store about one partition's stored checkpoint.

    Attributes:
        base: the version to replace, or `ABSENT` or `UNKNOWN`.
        floor: the highest sequence number seen in a row of another writer.
        unanswered: the store's writes whose outcome is unknown. If the backend chooses versions,
            they have none, and are recognised by their position.
        reached: the sequence number of the base's row; for the log, no decision depends on it.
    """

    base: str | Seen = Seen.UNKNOWN
    floor: int | None = None
    unanswered: tuple[Checkpoint, ...] = ()
    reached: int | None = field(default=None, compare=False)

    def refuses(self, sequence_number: int) -> bool:
        """Return whether a write of this sequence number would go back."""
        return self.floor is not None and sequence_number < self.floor

    def adopted(self, row: Checkpoint | None) -> "CheckpointGuard":
        """Return the state reset to the listed row, without a floor."""
        base = row.version if row else Seen.ABSENT
        return replace(self, base=base, floor=None, reached=row.sequence_number if row else None)

    def shown(self, row: Checkpoint | None) -> "CheckpointGuard":
        """Return the state after a list or a conflict showed the stored row."""
        if row is None or row.version == self.base:
            return self
        if self.wrote(row):
            reached = row.sequence_number
            return replace(self, base=row.version, unanswered=(), reached=reached)
        return replace(self, floor=highest([self.floor, row.sequence_number]))

    def wrote(self, row: Checkpoint) -> bool:
        """Return whether the row was written by this store, in a write whose answer was lost."""
        return any(is_same_write(write, row) for write in self.unanswered)

    def was_rewound(self, row: Checkpoint | None) -> bool:
        """Return whether another writer moved the stored row below the base."""
        if row is None or row.version == self.base or self.wrote(row):
            return False
        reached, stored = self.reached, row.sequence_number
        return reached is not None and stored is not None and stored < reached

    def written(
        self, version: str, forced: bool, sequence_number: int | None = None
    ) -> "CheckpointGuard":
        """Return the state after a confirmed write; a forced one also clears the floor."""
        floor = None if forced else self.floor
        return CheckpointGuard(version, floor, reached=sequence_number)

    def unsure(self, checkpoint: Checkpoint) -> "CheckpointGuard":
        """Return the state after a write that ended without an answer."""
        if checkpoint in self.unanswered:
            return self
        return replace(self, unanswered=(*self.unanswered, checkpoint)[-REMEMBERED_WRITES:])


def is_same_write(write: Checkpoint, row: Checkpoint) -> bool:
    """Return whether the stored row is the one that this write was to store."""
    if write.version:
        return write.version == row.version
    return (write.offset, write.sequence_number) == (row.offset, row.sequence_number)


def highest(numbers: Sequence[int | None]) -> int | None:
    """Return the highest of the known numbers."""
    return max((number for number in numbers if number is not None), default=None)


class Mark(NamedTuple):
    """Change counts of a partition when a list began."""

    writes: int = 0
    claims: int = 0
    adoptions: int = 0


class Marks(NamedTuple):
    """Change counts of a scope's partitions when a list began; `others` is for unknown ones."""

    known: dict[str, Mark]
    others: Mark

    def of(self, partition_id: str) -> Mark:
        """Return the change counts of one partition."""
        return self.known.get(partition_id, self.others)


@dataclass(slots=True)
class PartitionState:
    """State of one partition: its lease, its checkpoint, and their change counts.

    Attributes:
        writes, claims, adoptions: number of changes of each kind.
        taken_at: value of `claims` when the partition was newly claimed.
        writing: whether a write of this store is in progress. A list may show it before its answer
            arrives, and must not attribute it to another writer.
    """

    track: CheckpointGuard = field(default_factory=CheckpointGuard)
    hold: Lease = field(default_factory=Lease)
    writes: int = 0
    claims: int = 0
    adoptions: int = 0
    taken_at: int = 0
    writing: bool = False

    @property
    def mark(self) -> Mark:
        """Return the current change counts."""
        return Mark(self.writes, self.claims, self.adoptions)

    def write(self, track: CheckpointGuard) -> None:
        """Record the result of a write of this store."""
        self.track = track
        self.writes += 1

    def adopt(self, row: Checkpoint | None) -> None:
        """Reset the checkpoint's state to the listed row."""
        self.track = self.track.adopted(row)
        self.adoptions += 1

    def claim(self, hold: Lease) -> None:
        """Record the result of a claim of this store."""
        self.claims += 1
        if hold.owner_id and hold.owner_id != self.hold.owner_id:
            self.taken_at = self.claims
        self.hold = hold


class PartitionStates:
    """States of the partitions of every scope; not thread-safe, the base class holds a lock."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, dict[str, PartitionState]] = {}
        self._lists: Counter[Scope] = Counter()

    def partition(self, scope: Scope, partition_id: str) -> PartitionState:
        """Return the state of one partition; `ABSENT` if a list did not show it."""
        partitions = self._scopes.setdefault(scope, {})
        known = partitions.get(partition_id)
        if known is None:
            base = Seen.ABSENT if self._lists[scope] else Seen.UNKNOWN
            known = PartitionState(CheckpointGuard(base), adoptions=self._unknown(scope).adoptions)
            partitions[partition_id] = known
        return known

    def begin_list(self, scope: Scope) -> Marks:
        """Return the change counts; call this before a list is requested."""
        partitions = self._scopes.get(scope, {})
        known = {key: partition.mark for key, partition in partitions.items()}
        return Marks(known, self._unknown(scope))

    def _unknown(self, scope: Scope) -> Mark:
        """Return the counts of an unknown partition, which every list has shown to have no row."""
        return Mark(adoptions=self._lists[scope])

    def checkpoints_listed(self, scope: Scope, rows: Iterable[Checkpoint], began: Marks) -> None:
        """Apply a list of checkpoints."""
        shown = {row.partition_id: row for row in rows}
        for partition_id in shown.keys() | self._scopes.get(scope, {}).keys():
            known = self.partition(scope, partition_id)
            began_at = began.of(partition_id)
            is_first = known.hold.taken and began_at.claims >= known.taken_at
            if known.writes == began_at.writes and not known.writing:
                self._checkpoint_listed(known, shown.get(partition_id), began_at, is_first)
            if is_first:
                known.hold = known.hold.settled()
        self._lists[scope] += 1

    @staticmethod
    def _checkpoint_listed(
        known: PartitionState, row: Checkpoint | None, began_at: Mark, is_first: bool
    ) -> None:
        if is_first or not known.hold.ever or known.track.base is Seen.UNKNOWN:
            known.adopt(row)
        elif known.adoptions == began_at.adoptions:
            known.track = known.track.shown(row)

    def ownerships_listed(self, scope: Scope, rows: Iterable[Ownership], began: Marks) -> None:
        """Apply a list of ownerships; times are on this process's clock."""
        shown = {row.partition_id: row for row in rows}
        for partition_id in shown.keys() | self._scopes.get(scope, {}).keys():
            known = self.partition(scope, partition_id)
            if known.claims == began.of(partition_id).claims:
                known.hold = known.hold.listed(shown.get(partition_id))

    def forget(self, scope: Scope, partition_id: str | None) -> None:
        """Reset the state of a partition, or a whole scope, whose rows were deleted on purpose."""
        partitions = self._scopes.get(scope, {})
        for key in [partition_id] if partition_id is not None else [*partitions]:
            if known := partitions.get(key):
                known.claim(known.hold.listed(None))
                known.write(CheckpointGuard())

    def proposed(self, scope: Scope, partition_ids: Collection[str]) -> None:
        """Drop the leases of partitions that a batch of claims no longer proposes."""
        for partition_id, known in self._scopes.get(scope, {}).items():
            if partition_id not in partition_ids and known.hold.owner_id:
                known.claim(known.hold.lost())
