"""Start positions of receivers: parsing of filters, and lookup of the event.

Source: azure-eventhub 5.15.1, `_utils.py`, `event_position_selector`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.types import Described
from eventhub_checkpoints.localhub.conditions import (
    RefusedError,
    bad_filter,
    bad_offset,
    bad_sequence_number,
    foreign_offset,
)

if TYPE_CHECKING:
    from eventhub_checkpoints.localhub.log import PartitionLog

SELECTOR = "apache.org:selector-filter:string"

_EXPRESSION = re.compile(
    r"\s*amqp\.annotation\.x-opt-(offset|sequence-number|enqueued-time)\s*(>=?)\s*'?([^']*?)'?\s*"
)


@dataclass(frozen=True, slots=True)
class Position:
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
            raise RefusedError(bad_filter(self.value)) from None
        if self.kind == "enqueued-time":
            return log.at_time(number, self.inclusive)
        # A reader that has read everything requests the event after the last one.
        start = number if self.inclusive else number + 1
        if start > log.end:
            raise RefusedError(bad_sequence_number(number, log.end - 1))
        return max(start, log.first)

    def _at_offset(self, log: PartitionLog) -> int:
        if self.value == "@latest":
            return max(log.first, log.end - 1) if self.inclusive else log.end
        try:
            offset = log.read_offset(self.value)
        except ValueError:
            refusal = foreign_offset if log.is_replicated else bad_offset
            raise RefusedError(refusal(self.value, log.last_offset)) from None
        if offset is None:
            raise RefusedError(bad_offset(self.value, log.last_offset))
        return log.at_offset(offset, self.inclusive)


START = Position("offset", "-1", inclusive=False)
"""Position of a receiver without a filter: everything that is retained."""


def read_filters(filters: dict[object, object] | None) -> Position:
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
        raise RefusedError(bad_filter(str(value)))
    kind, operator, text = match.groups()
    return Position(kind, text, operator == ">=")
