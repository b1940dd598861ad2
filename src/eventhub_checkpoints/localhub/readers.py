"""Readers of a partition in a consumer group: their admission, and where they start.

Rule 1: a new reader with an epoch displaces all present ones, unless one has a higher epoch.
Rule 2: a new reader is refused if a present one has a higher epoch; no epoch is the lowest.
Rule 3: without epochs, five readers share the partition, and the sixth is refused.

Source: Event Hubs documentation, "Features and terminology", on epochs; public traces; for start
positions azure-eventhub 5.15.1, `_utils.py`, `event_position_selector`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints._shared.offset_words import END_OF_STREAM, START_OF_STREAM
from eventhub_checkpoints.amqp.types import Described
from eventhub_checkpoints.localhub import conditions
from eventhub_checkpoints.localhub.conditions import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventhub_checkpoints.amqp.performatives import Error
    from eventhub_checkpoints.localhub.delivery import EventLink
    from eventhub_checkpoints.localhub.hubs import PartitionLog

MAX_READERS = 5
SELECTOR = "apache.org:selector-filter:string"

_EXPRESSION = re.compile(
    r"\s*amqp\.annotation\.x-opt-(offset|sequence-number|enqueued-time)\s*(>=?)\s*'?([^']*?)'?\s*"
)


def admit(present: Sequence[EventLink], epoch: int | None) -> list[tuple[EventLink, Error]]:
    """Decide whether to admit a new reader.

    Args:
        present: the readers of the same partition and consumer group.
        epoch: the new reader's epoch.

    Returns:
        The readers to disconnect, each with the error to send.

    Raises:
        RefusedError: the new reader is not admitted.
    """
    epochs = [reader.epoch for reader in present if reader.epoch is not None]
    highest = max(epochs, default=None)
    if epoch is None:
        if highest is not None:
            raise RefusedError(conditions.higher_epoch_exists(highest, None))
        if len(present) >= MAX_READERS:
            names = [reader.name for reader in present]
            raise RefusedError(conditions.too_many_readers(MAX_READERS, names))
        return []
    if highest is not None and highest > epoch:
        raise RefusedError(conditions.higher_epoch_exists(highest, epoch))
    return [(reader, conditions.displaced(epoch, reader.epoch)) for reader in present]


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Start position: `kind` is "offset", "sequence-number" or "enqueued-time"."""

    kind: str
    value: str
    inclusive: bool

    def locate(self, log: PartitionLog) -> int:
        """Find the sequence number of the first event to deliver, which may be the next event.

        Raises:
            RefusedError: the value is not a position, or lies past the end of the partition.
        """
        if self.kind == "offset":
            return self._at_offset(log)
        try:
            number = int(self.value)
        except ValueError:
            raise RefusedError(conditions.bad_filter(self.value)) from None
        if self.kind == "enqueued-time":
            return log.locate("time", number, self.inclusive)
        # A reader that has read everything requests the event after the last one.
        start = number if self.inclusive else number + 1
        if start > log.end:
            raise RefusedError(conditions.bad_sequence_number(number, log.end - 1))
        return max(start, log.first)

    def _at_offset(self, log: PartitionLog) -> int:
        if self.value == END_OF_STREAM:
            return max(log.first, log.end - 1) if self.inclusive else log.end
        try:
            offset = log.read_offset(self.value)
        except ValueError:
            is_foreign = log.is_replicated
            refusal = conditions.foreign_offset if is_foreign else conditions.bad_offset
            raise RefusedError(refusal(self.value, log.last_offset)) from None
        if offset is None:
            raise RefusedError(conditions.bad_offset(self.value, log.last_offset))
        return log.locate("offset", offset, self.inclusive)


START = StartPosition("offset", START_OF_STREAM, inclusive=False)
"""Position of a receiver without a filter: everything that is retained."""


def read_filters(filters: dict[object, object] | None) -> StartPosition:
    """Read the filter set of a receiver's source.

    Raises:
        RefusedError: a selector is not a starting position.
    """
    value = (filters or {}).get(SELECTOR)
    if isinstance(value, Described):
        value = value.value
    if value is None:
        return START
    match = _EXPRESSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise RefusedError(conditions.bad_filter(str(value)))
    kind, operator, text = match.groups()
    return StartPosition(kind, text, operator == ">=")
