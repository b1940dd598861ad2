"""How far a partition's events are finished, in whatever order they finish.

Rule 1: the position is that of the last event of the finished prefix; an event that is not
finished is never below it. Rule 2: the position never goes back. Rule 3: no lock and no waiting;
who has threads locks, and who wants back-pressure asks `is_full`.
"""

import sys
from collections import deque
from typing import NamedTuple


class Position(NamedTuple):
    """An event of a partition, as a checkpoint names it.

    Attributes:
        sequence_number: of the event; counts events of one partition from 0.
        offset: opaque text, never compared; `""` when unknown.
    """

    sequence_number: int
    offset: str


class Ticket:
    """One event that was begun, or several in a row; finished once, by `done`.

    Attributes:
        position: of the (last) event; of a repeated one, the newest that was tracked before it.
        size: how many events it stands for.
        is_done: whether it was finished.
        has_failed: whether it was given up, so that the position stays before it.
    """

    __slots__ = ("_watermark", "has_failed", "is_done", "position", "size")

    def __init__(self, watermark: "Watermark", position: tuple[int, str], size: int = 1) -> None:
        self._watermark = watermark
        self.position = position
        self.size = size
        self.is_done = False
        self.has_failed = False

    def done(self) -> None:
        """Finish the event; a second time changes nothing."""
        self.is_done = True
        unpassed = self._watermark.unpassed
        if unpassed and unpassed[0] is self:
            self._watermark.move()

    def failed(self) -> None:
        """Give the event up: the position does not pass it, unless `done` follows after all."""
        self.has_failed = True


class Watermark:
    """The low watermark of one partition in one claim: what may be saved.

    Tracking and finishing an event take constant time (each is passed once), in any order.

    Args:
        max_pending: events that may be begun and not passed before `is_full`.

    Attributes:
        count: events in the finished prefix.
        pending: events that were begun and that the position has not passed.
        unpassed: tickets that the position has not passed, in the order of arrival.
    """

    __slots__ = ("_newest", "_passed", "count", "max_pending", "pending", "unpassed")

    def __init__(self, max_pending: int = sys.maxsize) -> None:
        self.max_pending = max_pending
        self.count = 0
        self.pending = 0
        self.unpassed: deque[Ticket] = deque()
        self._newest: tuple[int, str] | None = None
        self._passed: tuple[int, str] | None = None

    @property
    def position(self) -> Position | None:
        """Of the last event of the finished prefix; None while there is none."""
        # Made when it is asked for: far more events are passed than saved.
        return self._passed and Position(*self._passed)

    def track(self, position: tuple[int, str], size: int = 1) -> Ticket:
        """Begin an event, or several of which this is the last; call it in the order of arrival.

        After a link was opened anew the client delivers events again that it had buffered, so
        sequence numbers may repeat and fall within one claim. A repeated event is work like any
        other, and counts as the newest position that was tracked: it moves nothing back.

        Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`: the buffer is
        kept, and the new link begins behind the last event that was delivered from it.
        """
        ticket = Ticket(self, position, size)
        self.enter(ticket)
        return ticket

    def enter(self, ticket: Ticket) -> None:
        """Begin the event of a ticket that the caller has made."""
        newest = self._newest
        if newest is None or ticket.position[0] > newest[0]:
            self._newest = ticket.position
        else:
            ticket.position = newest
        self.unpassed.append(ticket)
        self.pending += ticket.size

    def move(self) -> None:
        """Pass what is finished at the head."""
        unpassed, passed = self.unpassed, 0
        while unpassed and unpassed[0].is_done:
            last = unpassed.popleft()
            passed += last.size
        if passed:
            self._passed = last.position
            self.count += passed
            self.pending -= passed

    def split(self, ticket: Ticket, position: tuple[int, str], size: int) -> Ticket:
        """Take the first events out of a ticket that the position has not passed, as one apart.

        Args:
            ticket: stands for more than `size` events.
            position: of the last event that is taken out.
            size: how many are.
        """
        at = len(self.unpassed) - 1
        # What is split was tracked lately.
        while self.unpassed[at] is not ticket:
            at -= 1
        before = self.unpassed[at - 1].position if at else self.position
        if before is not None and position[0] < before[0]:
            position = before
        first = Ticket(self, position, size)
        ticket.size -= size
        self.unpassed.insert(at, first)
        return first

    @property
    def is_full(self) -> bool:
        """Whether no more events should be begun for now."""
        return self.pending >= self.max_pending

    @property
    def is_settled(self) -> bool:
        """Whether waiting will not move it: nothing is pending, or what comes next has failed."""
        return not self.unpassed or self.unpassed[0].has_failed
