"""Which writes of checkpoints get an entry in a history, and how many entries a partition keeps."""

from eventhub_checkpoints.records import Checkpoint, Scope
from eventhub_checkpoints.stores.hook_results import FORCE, Seen

ENTRY_INTERVAL = 60.0
"""Seconds between two entries of a partition; rewinds always have theirs."""
FULL, KEPT = 990, 900
"""Entries of a partition from which it is pruned, and how many remain. At most 1,000 are stored:
the difference is room for other processes that write an entry at the same time."""
CHECKPOINT, REPLACED, REWIND = "checkpoint", "replaced", "rewind"
"""Kinds of entries; see `HistoryEntry`."""


class EntriesDue:
    """What this process has written, at most once a minute, and what it is asked to keep.

    Times are seconds of a clock that only grows.
    """

    def __init__(self) -> None:
        self._written: dict[tuple[Scope, str], float] = {}
        self._marked: set[tuple[Scope, str]] = set()

    def mark(self, scope: Scope, partition_id: str) -> None:
        """Keep the next write of a partition like a rewind."""
        self._marked.add((scope.folded, partition_id))

    def is_marked(self, checkpoint: Checkpoint) -> bool:
        """Return whether this write was marked."""
        return key_of(checkpoint) in self._marked

    def is_rewind(self, checkpoint: Checkpoint, seen: str | Seen | None) -> bool:
        """Return whether what this write replaces is kept, too."""
        return seen is FORCE or self.is_marked(checkpoint)

    def are_due(self, checkpoint: Checkpoint, seen: str | Seen | None, now: float) -> bool:
        """Return whether this write gets an entry, as far as this process knows."""
        if checkpoint.scope.is_reserved:
            return False
        last = self._written.get(key_of(checkpoint))
        is_rewind = self.is_rewind(checkpoint, seen)
        return is_rewind or last is None or now - last >= ENTRY_INTERVAL

    def wrote(self, checkpoint: Checkpoint, now: float) -> None:
        """Note that a write has its entry."""
        self._written[key_of(checkpoint)] = now
        self._marked.discard(key_of(checkpoint))

    def forget(self, scope: Scope, partition_id: str | None) -> None:
        """Forget the entries of a partition, or of a group."""
        for key in list(self._written):
            if key[0] == scope.folded and partition_id in (None, key[1]):
                self._written.pop(key, None)


def key_of(checkpoint: Checkpoint) -> tuple[Scope, str]:
    """Return the partition of a checkpoint."""
    return checkpoint.scope.folded, checkpoint.partition_id
