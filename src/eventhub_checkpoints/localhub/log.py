"""A partition: its events in order, numbered for ever, dropped from the front by retention."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .events import Event

_OVERHEAD = 24
"""Bytes that an event counts beyond its own, so that offsets never look like sequence numbers."""


class PartitionLog:
    """Append, trim and locate events.

    Offsets are byte positions: the first is 0, every next one is larger by the event's size.

    Attributes:
        first: sequence number of the first event that is retained.
        payloads: the retained events as they are delivered.
        listeners: called after each append.
    """

    def __init__(self) -> None:
        self.first = 0
        self.payloads: list[bytes] = []
        self.listeners: set[Callable[[], None]] = set()
        self._offsets = array("q")
        self._times = array("q")
        self._next_offset = 0
        self.last_offset = -1
        self.last_time = 0

    @property
    def end(self) -> int:
        """Sequence number that the next event will get."""
        return self.first + len(self.payloads)

    def append(self, events: Iterable[Event], now: int) -> range:
        """Store events and tell the listeners.

        Args:
            events: in the order in which they get their numbers.
            now: their enqueued time in milliseconds; never earlier than the event's before.

        Returns:
            The sequence numbers.
        """
        start = number = self.end
        time = max(now, self.last_time)
        for event in events:
            offset = self._next_offset
            self.payloads.append(event.stored(number, str(offset), time))
            self._offsets.append(offset)
            self._times.append(time)
            self._next_offset = offset + len(event.rest) + _OVERHEAD
            self.last_offset, self.last_time = offset, time
            number += 1
        for listener in tuple(self.listeners):
            listener()
        return range(start, number)

    def trim(self, before: int) -> int:
        """Drop the events whose sequence number is below `before`; return how many."""
        count = max(0, min(before, self.end) - self.first)
        del self.payloads[:count], self._offsets[:count], self._times[:count]
        self.first += count
        return count

    def at_offset(self, offset: int, inclusive: bool) -> int:
        """Find the first event at or after an offset, or after it."""
        find = bisect_left if inclusive else bisect_right
        return self.first + find(self._offsets, offset)

    def at_time(self, time: int, inclusive: bool) -> int:
        """Find the first event that was enqueued at or after a time, or after it."""
        find = bisect_left if inclusive else bisect_right
        return self.first + find(self._times, time)
