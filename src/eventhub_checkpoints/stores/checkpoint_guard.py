"""Checkpoints go forward: the rule of one partition, as a pure function over what is known of it.

Rule 1: the base is the row that this store may write over: its own last write, or what a list
showed when it took the partition. What nobody else wrote may go down, so the base is no bound:
an event hub that was re-created starts again at 0.
Rule 2: any other row that is met raises the floor; a write below the floor is refused.
Rule 3: a write whose answer was lost is recognised when a read shows it, and is then the base.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eventhub_checkpoints.records import Checkpoint
from eventhub_checkpoints.stores.hook_results import Seen

REMEMBERED_WRITES = 8


@dataclass(frozen=True, slots=True)
class Track:
    """What one store knows of one partition's stored checkpoint.

    Attributes:
        base: the version to write over; `ABSENT` and `UNKNOWN` are bases too.
        floor: the highest sequence number met in a row of another writer.
        unanswered: own writes whose outcome is not known. Those of a backend that makes its own
            versions have none, and are recognised by their position.
        reached: the sequence number of the base's row; for the log, no decision depends on it.
    """

    base: str | Seen = Seen.UNKNOWN
    floor: int | None = None
    unanswered: tuple[Checkpoint, ...] = ()
    reached: int | None = field(default=None, compare=False)

    def refuses(self, sequence_number: int) -> bool:
        """Whether a write of this sequence number would go back."""
        return self.floor is not None and sequence_number < self.floor

    def adopted(self, row: Checkpoint | None) -> "Track":
        """A list decides anew where the partition stands."""
        base = row.version if row else Seen.ABSENT
        return replace(self, base=base, floor=None, reached=row.sequence_number if row else None)

    def shown(self, row: Checkpoint | None) -> "Track":
        """A list or a conflict showed what is stored."""
        if row is None or row.version == self.base:
            return self
        if self.wrote(row):
            reached = row.sequence_number
            return replace(self, base=row.version, unanswered=(), reached=reached)
        return replace(self, floor=highest([self.floor, row.sequence_number]))

    def wrote(self, row: Checkpoint) -> bool:
        """Whether the row is an own write whose answer was lost."""
        return any(is_same_write(write, row) for write in self.unanswered)

    def was_rewound(self, row: Checkpoint | None) -> bool:
        """Whether another writer moved the stored row below the base."""
        if row is None or row.version == self.base or self.wrote(row):
            return False
        reached, stored = self.reached, row.sequence_number
        return reached is not None and stored is not None and stored < reached

    def written(self, version: str, forced: bool, sequence_number: int | None = None) -> "Track":
        """A write was confirmed; a forced one also clears the floor."""
        floor = None if forced else self.floor
        return Track(version, floor, reached=sequence_number)

    def unsure(self, checkpoint: Checkpoint) -> "Track":
        """A write ended without an answer."""
        if checkpoint in self.unanswered:
            return self
        return replace(self, unanswered=(*self.unanswered, checkpoint)[-REMEMBERED_WRITES:])


def is_same_write(write: Checkpoint, row: Checkpoint) -> bool:
    """Whether the stored row is what this write wanted to store."""
    if write.version:
        return write.version == row.version
    return (write.offset, write.sequence_number) == (row.offset, row.sequence_number)


def highest(numbers: Sequence[int | None]) -> int | None:
    """The highest of the numbers that are known."""
    return max((number for number in numbers if number is not None), default=None)
