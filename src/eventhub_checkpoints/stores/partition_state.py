"""State that one store keeps for each partition.

`Lease` is the lease of an ownership (G2), `CheckpointGuard` protects a checkpoint against going
back (G3), and `PartitionStates` holds both for every partition that the store has dealt with.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from eventhub_checkpoints.records import RELEASED, Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Seen

REMEMBERED_ETAGS = 32


@dataclass(frozen=True, slots=True)
class Lease:
    """Ownership of a partition from the time it was won until it is lost or released.

    Attributes:
        owner_id: owner that holds the partition through this store; `""` if none.
        taken: whether the partition was newly won, and its first list since then is pending.
        was_held: whether this store has ever held the partition.
        doubted: owner that has lost the partition according to a list. The owner's client closes
            the partition only after its next claims, and not at all if one of them wins it back.
            The attribute stays set until the client is known to have reopened the partition.
        winner: owner that won `etags`.
        etags: etags won in an unbroken series of claims, the newest last. A late release may use
            the newest, but must not undo a newer claim of the same client.
    """

    owner_id: str = RELEASED
    taken: bool = False
    was_held: bool = False
    doubted: str = RELEASED
    winner: str = RELEASED
    etags: tuple[str, ...] = ()

    @property
    def is_in_doubt(self) -> bool:
        """Return whether the partition is lost, but its client may still have it open."""
        return bool(self.doubted) and not self.owner_id

    @property
    def is_won_back(self) -> bool:
        """Return whether the partition was lost and won again, and may never have been closed."""
        return bool(self.doubted and self.owner_id)

    def won(self, row: Ownership, previous_etag: str | None) -> "Lease":
        """Return the lease after a confirmed claim, renewal or release over `previous_etag`."""
        if row.owner_id == RELEASED:
            return Lease(was_held=self.was_held)
        goes_on = row.owner_id == self.winner and previous_etag in self.etags
        return Lease(
            owner_id=row.owner_id,
            taken=self.taken or row.owner_id not in (self.owner_id, self.doubted),
            was_held=True,
            doubted=self.doubted if row.owner_id == self.doubted else RELEASED,
            winner=row.owner_id,
            etags=(*(self.etags if goes_on else ()), row.etag)[-REMEMBERED_ETAGS:],
        )

    def settled(self) -> "Lease":
        """Return the lease after the first list that follows its claim."""
        return replace(self, taken=False, doubted=RELEASED)

    def lost(self) -> "Lease":
        """Return the lease after the partition was lost."""
        return replace(self, owner_id=RELEASED, taken=False, doubted=RELEASED)

    def listed(self, row: Ownership | None) -> "Lease":
        """Return the lease after a list of ownerships; `row` is None if there is none."""
        is_lost = self.owner_id and (row is None or row.owner_id != self.owner_id)
        return replace(self.lost(), doubted=self.owner_id) if is_lost else self

    def newer_etag(self, etag: str | None) -> str | None:
        """Return the newest etag of the series that includes this one; None if it is the newest."""
        if etag not in self.etags or self.etags[-1] == etag:
            return None
        return self.etags[-1]


REMEMBERED_WRITES = 8


@dataclass(frozen=True, slots=True)
class CheckpointGuard:
    """Knowledge of one store about one partition's stored checkpoint.

    Attributes:
        base: the version to replace, or `ABSENT` or `UNKNOWN`.
        floor: the highest sequence number seen in a row of another writer.
        unanswered: the store's writes whose outcome is unknown. If the backend chooses versions,
            these writes have no version, and are recognised by their position.
        reached: the sequence number of the base's row; only the log uses it.
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
        base, reached = (row.version, row.sequence_number) if row else (Seen.ABSENT, None)
        if (base, None, reached) == (self.base, self.floor, self.reached):
            return self
        return CheckpointGuard(base, None, self.unanswered, reached)

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


_changes = count(1)


def next_change() -> int:
    """Return a number that is higher than those of all earlier changes and lists.

    A list may show what was stored when it began. It is compared with the numbers of the changes
    that it could undo.
    """
    return next(_changes)


@dataclass(slots=True, eq=False)
class PartitionState:
    """State of one partition: its lease, its checkpoint, and the numbers of their last changes.

    Attributes:
        confirmed: the row as the server last confirmed it, and the time of its last modification on
            this process's clock.
        written_at, claimed_at: number of this store's last write or claim.
        adopted_at: number of the list that the checkpoint was last reset to.
        taken_at: number of the claim that newly won the partition.
        doubted_at: number of the last list that has shown the partition as lost.
        writing: whether a write of this store is in progress. A list may show it before its answer
            arrives, and must not attribute it to another writer.
        must_reopen: whether the client is to close the partition and open it again.
    """

    checkpoint: CheckpointGuard = field(default_factory=CheckpointGuard)
    lease: Lease = field(default_factory=Lease)
    confirmed: tuple[Ownership, float] | None = None
    written_at: int = 0
    claimed_at: int = 0
    adopted_at: int = 0
    taken_at: int = 0
    doubted_at: int = 0
    writing: bool = False
    must_reopen: bool = False

    def record_write(self, checkpoint: CheckpointGuard) -> None:
        """Record the result of a write of this store."""
        self.checkpoint = checkpoint
        self.written_at = next_change()

    def record_claim(self, lease: Lease, row: Ownership | None = None) -> None:
        """Record the result of a claim of this store, and the row if it was won.

        The row's time is on this process's clock.
        """
        self.claimed_at = next_change()
        if lease.owner_id and lease.owner_id != self.lease.owner_id:
            self.taken_at = self.claimed_at
        self.lease = lease
        self.confirmed = (row, row.last_modified_time) if row else None

    def renewed_by(self, owner_id: str, etag: str | None) -> Ownership | None:
        """Return the confirmed row if a claim by this owner with this etag renews it."""
        if self.confirmed is None or not owner_id:
            return None
        row, last_modified_time = self.confirmed
        return row.at(last_modified_time) if (row.owner_id, row.etag) == (owner_id, etag) else None


@dataclass(slots=True, eq=False)
class ScopeState:
    """States of a scope's partitions.

    Attributes:
        partitions: by their ids.
        listed_at: number of the last list of checkpoints.
        proposed: partitions in the last batch of claims.
        proposed_at: number of that batch.
    """

    partitions: dict[str, PartitionState] = field(default_factory=dict)
    listed_at: int = 0
    proposed: set[str] = field(default_factory=set)
    proposed_at: int = 0

    def opens(self, partition_id: str, lease: Lease) -> bool:
        """Return whether a client that lists checkpoints is certain to open this partition.

        It lists them only to open a partition. It may have kept open one that it lost and won back,
        unless it has proposed no other.
        """
        return lease.taken or (lease.is_won_back and self.proposed == {partition_id})


class PartitionStates:
    """States of the partitions of every scope; not thread-safe, the base class holds a lock.

    Args:
        identity: returns the canonical spelling of a scope; equal spellings share their states.
    """

    def __init__(self, identity: Callable[[Scope], Scope] = lambda scope: scope.folded) -> None:
        self._identity = identity
        self._scopes: dict[Scope, ScopeState] = {}

    def _scope(self, scope: Scope) -> ScopeState:
        state = self._scopes.get(scope)
        if state is None:
            state = self._scopes.setdefault(self._identity(scope), ScopeState())
            self._scopes[scope] = state
        return state

    def partition(self, scope: Scope, partition_id: str) -> PartitionState:
        """Return the state of one partition.

        The checkpoint of a new state is `ABSENT` if a list of checkpoints did not show it, and
        `UNKNOWN` if there was no list.
        """
        group = self._scope(scope)
        state = group.partitions.get(partition_id)
        if state is None:
            base = Seen.ABSENT if group.listed_at else Seen.UNKNOWN
            state = PartitionState(CheckpointGuard(base), adopted_at=group.listed_at)
            group.partitions[partition_id] = state
        return state

    def checkpoints_listed(self, scope: Scope, rows: Iterable[Checkpoint], began: int) -> None:
        """Apply a list of checkpoints; `began` is the number of its beginning."""
        here, shown = self._scope(scope), {row.partition_id: row for row in rows}
        ended = next_change()
        for partition_id in shown.keys() | here.partitions.keys():
            known = here.partitions.get(partition_id) or self.partition(scope, partition_id)
            row = shown.get(partition_id)
            is_first = known.taken_at < began and here.opens(partition_id, known.lease)
            if known.written_at > began or known.writing:
                pass  # older than what the store has written since
            elif is_first or not known.lease.was_held or known.checkpoint.base is Seen.UNKNOWN:
                known.checkpoint = known.checkpoint.adopted(row)
                known.adopted_at = ended
            elif known.adopted_at < began:
                known.checkpoint = known.checkpoint.shown(row)
            if is_first:
                known.lease = known.lease.settled()
        here.listed_at = ended

    def ownerships_listed(
        self, scope: Scope, rows: Iterable[tuple[Ownership, float]], began: int
    ) -> None:
        """Apply a list of ownerships, each with its time on this process's clock."""
        here, shown = self._scope(scope), {row[0].partition_id: row for row in rows}
        for partition_id in shown.keys() | here.partitions.keys():
            known = here.partitions.get(partition_id) or self.partition(scope, partition_id)
            if known.claimed_at < began:
                known.confirmed = shown.get(partition_id)
                was_in_doubt = known.lease.is_in_doubt
                known.lease = known.lease.listed(known.confirmed and known.confirmed[0])
                if was_in_doubt and here.proposed_at < known.doubted_at:
                    # The client had nothing to claim after the last list, and closed everything.
                    known.lease = known.lease.lost()
                elif known.lease.is_in_doubt:
                    known.doubted_at = next_change()

    def forget(self, scope: Scope, partition_id: str | None) -> None:
        """Reset the state of a partition, or a whole scope, whose rows were deleted on purpose."""
        for key, known in self._scope(scope).partitions.items():
            if partition_id in (None, key):
                known.record_claim(known.lease.lost())
                known.record_write(CheckpointGuard())

    def proposed(self, claims: Iterable[Proposal]) -> None:
        """Drop the leases of partitions that a batch of claims no longer proposes."""
        batches: dict[ScopeState, set[str]] = {}
        for claim in claims:
            batches.setdefault(self._scope(claim.scope), set()).add(claim.partition_id)
        for here, partition_ids in batches.items():
            here.proposed, here.proposed_at = partition_ids, next_change()
            for partition_id, known in here.partitions.items():
                is_held = known.lease.owner_id or known.lease.doubted
                if is_held and partition_id not in partition_ids:
                    known.record_claim(known.lease.lost())
