"""What one store knows of every partition that it was asked about.

Lists overlap with claims and writes. A list that began before a change and ended after it must
not undo what the change has taught: each partition counts its changes, and a list compares.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.checkpoint_guard import Track
from eventhub_checkpoints.stores.hook_results import Seen
from eventhub_checkpoints.stores.lease import Hold


class Mark(NamedTuple):
    """How often a partition had changed when a list began."""

    writes: int = 0
    claims: int = 0
    adoptions: int = 0


class Marks(NamedTuple):
    """The marks of a scope's partitions when a list began; `others` is that of all unknown."""

    known: dict[str, Mark]
    others: Mark

    def of(self, partition_id: str) -> Mark:
        """The mark of one partition."""
        return self.known.get(partition_id, self.others)


@dataclass(slots=True)
class Partition:
    """One partition: its claim, its checkpoint, and how often each has changed.

    Attributes:
        writes, claims, adoptions: how often each has changed.
        taken_at: which of the claims has taken the partition.
        writing: whether a write of this store is under way. A list may show it before its answer
            is here, and must not take it for somebody else's.
    """

    track: Track = field(default_factory=Track)
    hold: Hold = field(default_factory=Hold)
    writes: int = 0
    claims: int = 0
    adoptions: int = 0
    taken_at: int = 0
    writing: bool = False

    @property
    def mark(self) -> Mark:
        """How often it has changed until now."""
        return Mark(self.writes, self.claims, self.adoptions)

    def write(self, track: Track) -> None:
        """Note what a write of this store has taught."""
        self.track = track
        self.writes += 1

    def adopt(self, row: Checkpoint | None) -> None:
        """Stand anew where a list has shown the partition."""
        self.track = self.track.adopted(row)
        self.adoptions += 1

    def claim(self, hold: Hold) -> None:
        """Note what a claim of this store has taught."""
        self.claims += 1
        if hold.owner_id and hold.owner_id != self.hold.owner_id:
            self.taken_at = self.claims
        self.hold = hold


class Ledger:
    """The partitions of every scope; not safe for threads, the shell guards it."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, dict[str, Partition]] = {}
        self._lists: Counter[Scope] = Counter()

    def partition(self, scope: Scope, partition_id: str) -> Partition:
        """What is known of one partition; "no row" once a list has not shown it."""
        partitions = self._scopes.setdefault(scope, {})
        known = partitions.get(partition_id)
        if known is None:
            base = Seen.ABSENT if self._lists[scope] else Seen.UNKNOWN
            known = Partition(Track(base), adoptions=self._unknown(scope).adoptions)
            partitions[partition_id] = known
        return known

    def begin_list(self, scope: Scope) -> Marks:
        """To be called before a list is asked for."""
        partitions = self._scopes.get(scope, {})
        known = {key: partition.mark for key, partition in partitions.items()}
        return Marks(known, self._unknown(scope))

    def _unknown(self, scope: Scope) -> Mark:
        """The mark of a partition that no list has shown: each has shown that it has no row."""
        return Mark(adoptions=self._lists[scope])

    def checkpoints_listed(self, scope: Scope, rows: Iterable[Checkpoint], began: Marks) -> None:
        """Learn from a list of checkpoints."""
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
        known: Partition, row: Checkpoint | None, began_at: Mark, is_first: bool
    ) -> None:
        if is_first or not known.hold.ever or known.track.base is Seen.UNKNOWN:
            known.adopt(row)
        elif known.adoptions == began_at.adoptions:
            known.track = known.track.shown(row)

    def ownerships_listed(self, scope: Scope, rows: Iterable[Ownership], began: Marks) -> None:
        """Learn from a list of ownerships; times are on this process's clock."""
        shown = {row.partition_id: row for row in rows}
        for partition_id in shown.keys() | self._scopes.get(scope, {}).keys():
            known = self.partition(scope, partition_id)
            if known.claims == began.of(partition_id).claims:
                known.hold = known.hold.listed(shown.get(partition_id))

    def forget(self, scope: Scope, partition_id: str | None) -> None:
        """Know nothing of a partition, or of a whole scope, whose rows were removed on purpose."""
        partitions = self._scopes.get(scope, {})
        for key in [partition_id] if partition_id is not None else [*partitions]:
            if known := partitions.get(key):
                known.claim(known.hold.listed(None))
                known.write(Track())

    def proposed(self, scope: Scope, partition_ids: Collection[str]) -> None:
        """A batch of claims that no longer proposes a partition has given it up."""
        for partition_id, known in self._scopes.get(scope, {}).items():
            if partition_id not in partition_ids and known.hold.owner_id:
                known.claim(known.hold.lost())
