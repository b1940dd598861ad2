"""Log of a partition: events in order, with permanent numbers, trimmed by retention."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from eventhub_checkpoints.localhub.events import read_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from eventhub_checkpoints.localhub.events import Event

REPLICA = "1:"
"""Prefix of the offsets of a geo-replicated hub here; the service's own form is opaque."""
_OVERHEAD = 24
"""Bytes added to the size of an event, so that offsets never look like sequence numbers."""


class PartitionLog:
    """Events of a partition, to be appended, trimmed and located.

    Offsets are byte positions: the first is 0, each next one is larger by the event's size.

    Args:
        is_replicated: see below.

    Attributes:
        first: sequence number of the first retained event.
        payloads: the retained events in the form in which they are delivered.
        listeners: called after each append.
        is_replicated: whether offsets are those of a hub with geo-replication.
    """

    def __init__(self, is_replicated: bool) -> None:
        self.first = 0
        self.payloads: list[bytes] = []
        self.listeners: set[Callable[[], None]] = set()
        self._offsets = array("q")
        self._times = array("q")
        self._next_offset = 0
        self._last_offset = -1
        self.last_time = 0
        self.is_replicated = is_replicated

    @property
    def end(self) -> int:
        """Sequence number of the next event."""
        return self.first + len(self.payloads)

    @property
    def last_offset(self) -> str:
        """Offset of the newest event; "-1" where it is not known."""
        return "-1" if self._last_offset < 0 else self._spelled(self._last_offset)

    def _spelled(self, offset: int) -> str:
        return f"{REPLICA}{offset}" if self.is_replicated else str(offset)

    def read_offset(self, text: str) -> int | None:
        """Parse an offset that a client sends; return None if it lies past the end.

        Raises:
            ValueError: the string is not an offset of this hub.
        """
        if self.is_replicated and text != "-1":
            if not text.startswith(REPLICA):
                raise ValueError(f"{text!r} is not an offset of a hub with geo-replication")
            text = text.removeprefix(REPLICA)
        offset = int(text)
        return None if offset > self._last_offset else offset

    def replicate(self) -> None:
        """Change all offsets to those of a hub with geo-replication."""
        self.is_replicated = True
        for at, (offset, time) in enumerate(zip(self._offsets, self._times, strict=True)):
            (event,) = read_events(self.payloads[at], 0)
            self.payloads[at] = event.stored(self.first + at, self._spelled(offset), time)

    def append(self, events: Iterable[Event], now: int) -> range:
        """Store events and notify the listeners.

        Args:
            events: in the order in which they get their numbers.
            now: their enqueued time in milliseconds; raised to the previous event's if earlier.

        Returns:
            The sequence numbers.
        """
        start = number = self.end
        time = max(now, self.last_time)
        for event in events:
            offset = self._next_offset
            self.payloads.append(event.stored(number, self._spelled(offset), time))
            self._offsets.append(offset)
            self._times.append(time)
            self._next_offset = offset + len(event.rest) + _OVERHEAD
            self._last_offset, self.last_time = offset, time
            number += 1
        for listener in tuple(self.listeners):
            listener()
        return range(start, number)

    def trim(self, before: int, forget_offset: bool) -> int:
        """Drop the events whose sequence number is below `before`; return how many.

        Args:
            before: sequence number of the first event to keep.
            forget_offset: if no event is left, `last_offset` becomes "-1".
        """
        count = max(0, min(before, self.end) - self.first)
        del self.payloads[:count], self._offsets[:count], self._times[:count]
        self.first += count
        if forget_offset and not self.payloads:
            self._last_offset = -1
        return count

    def at_offset(self, offset: int, inclusive: bool) -> int:
        """Return the number of the first event after an offset, or from it on if `inclusive`."""
        find = bisect_left if inclusive else bisect_right
        return self.first + find(self._offsets, offset)

    def at_time(self, time: int, inclusive: bool) -> int:
        """Return the number of the first event after a time, or from it on if `inclusive`."""
        find = bisect_left if inclusive else bisect_right
        return self.first + find(self._times, time)
