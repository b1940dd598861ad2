"""What a partition holds."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """What a partition holds at this moment.

    Attributes:
        first_sequence_number: of the first event that is still retained; equal to
            `next_sequence_number` where there is none.
        next_sequence_number: that the next event will get.
        last_enqueued_offset: of the newest event, opaque text.
        last_enqueued_time: of the newest event, UTC; None where the transport does not tell.
    """

    partition_id: str
    first_sequence_number: int
    next_sequence_number: int
    last_enqueued_offset: str
    last_enqueued_time: datetime | None

    @property
    def is_empty(self) -> bool:
        """Whether no event is retained."""
        return self.first_sequence_number == self.next_sequence_number
