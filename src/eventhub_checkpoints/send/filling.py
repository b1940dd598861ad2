"""Batches of encoded events, filled to the hub's limit, and the order in which they are sent."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from eventhub_checkpoints._shared.partition_keys import LONGEST_KEY, excessive_length
from eventhub_checkpoints.errors import ConfigurationError


def check_keys(keys: Sequence[str | None] | None) -> None:
    """Check that the service accepts the key of each row.

    Raises:
        ConfigurationError: one is too long; the message names the row.
    """
    for row, key in enumerate(keys or ()):
        if key is not None and (length := excessive_length(key)):
            raise ConfigurationError(
                f"row {row} of a batch has a partitionKey of {length} characters; the service "
                f"accepts at most {LONGEST_KEY}. Send a hash of it instead, such as sha2(key, 256) "
                "in Spark"
            )


def check_sizes(sections: Sequence[bytes], limit: int) -> None:
    """Check that the hub accepts each of the encoded rows.

    Raises:
        ConfigurationError: one is larger than the limit; the message names the row.
    """
    largest = max(map(len, sections))
    if largest > limit:
        row = next(row for row, section in enumerate(sections) if len(section) > limit)
        raise ConfigurationError(
            f"row {row} of a batch is an event of {len(sections[row]):,} bytes with its "
            f"properties; the hub accepts at most {limit:,} bytes"
        )


@dataclass(slots=True, eq=False)
class Batch:
    """Events of one partition that are sent together.

    Attributes:
        partition_id: None where the service chooses the partition.
        sections: each a data section with one message.
        size: bytes of all sections.
    """

    partition_id: str | None
    sections: list[bytes] = field(default_factory=list)
    size: int = 0

    def __len__(self) -> int:
        return len(self.sections)


class BatchFiller:
    """Batches that are being filled, one for each partition and one for the service's choice.

    Args:
        most: bytes at which a batch is complete.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str | None, Batch] = {}

    def add(self, partition_id: str | None, sections: Sequence[bytes]) -> Iterator[Batch]:
        """Add events in order; yield each batch that is complete."""
        ends = list(accumulate(map(len, sections)))
        begin = done = 0
        while begin < len(sections):
            batch = self._open.get(partition_id) or Batch(partition_id)
            end = bisect_right(ends, done + self._most - batch.size, begin)
            if end == begin and not batch.sections:
                # Larger than a batch should be: it is sent alone.
                end = begin + 1
            if end > begin:
                batch.sections += sections[begin:end]
                batch.size += ends[end - 1] - done
                begin, done = end, ends[end - 1]
                self._open[partition_id] = batch
            if begin < len(sections):
                yield self._open.pop(partition_id)

    def rest(self) -> Iterator[Batch]:
        """Yield the batches that are not complete."""
        while self._open:
            yield self._open.pop(next(iter(self._open)))
