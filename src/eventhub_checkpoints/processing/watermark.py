"""Positions up to which all events of a partition are finished.

`Watermark` follows events that finish in any order, `Deliveries` the events that a handler was
given, and `Latest` the checkpoints of a program that saves them itself.
"""

import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
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


class Row(NamedTuple):
    """Events in a row.

    Attributes:
        numbers: their sequence numbers, which rise; with gaps where a hub is compacted.
        last: position of the last.
    """

    numbers: Sequence[int]
    last: Position


@dataclass(slots=True)
class Delivery:
    """Events in a row that are finished together.

    Attributes:
        ticket: what stands for them.
        numbers: their sequence numbers.
        batch: which batch they were given in.
    """

    ticket: Ticket
    numbers: Sequence[int]
    batch: int


class Deliveries:
    """The events of one claim that a handler was given and that are not finished."""

    def __init__(self, watermark: Watermark) -> None:
        self._watermark = watermark
        self._open: list[Delivery] = []
        self._batch = 0

    def begin(self, rows: list[Row]) -> None:
        """Note the next batch that the handler is given, in the order of arrival.

        Args:
            rows: one, or several where numbers fall in its middle.
        """
        self._batch += 1
        for numbers, last in rows:
            ticket = self._watermark.track(last, len(numbers))
            self._open.append(Delivery(ticket, numbers, self._batch))

    def finish(self) -> None:
        """Finish all."""
        for delivery in self._open:
            delivery.ticket.done()
        self._open.clear()

    def finish_until(self, position: Position) -> None:
        """Finish every event up to this one, and it."""
        for delivery in list(self._open):
            size = bisect_right(delivery.numbers, position.sequence_number)
            if size == len(delivery.numbers):
                delivery.ticket.done()
                self._open.remove(delivery)
            elif size:
                self._cut(delivery, position, size).ticket.done()

    def take_out(self, position: Position, previous: Position | None) -> Ticket | None:
        """Have one event of the last batch finished apart; None if it is not open there.

        Args:
            position: of the event.
            previous: of the event before it in that batch; None: it is the first.
        """
        number = position.sequence_number
        for at, delivery in enumerate(self._open):
            if delivery.batch != self._batch or number not in delivery.numbers:
                continue
            before = bisect_right(delivery.numbers, number) - 1
            if before:
                neighbour = delivery.numbers[before - 1]
                if previous is None or previous.sequence_number != neighbour:
                    # The event came twice, and this is the other time.
                    continue
                self._open.insert(at, self._cut(delivery, previous, before))
            if len(delivery.numbers) > 1:
                return self._cut(delivery, position, 1).ticket
            self._open.remove(delivery)
            return delivery.ticket
        return None

    def _cut(self, delivery: Delivery, position: Position, size: int) -> Delivery:
        ticket = self._watermark.split(delivery.ticket, position, size)
        numbers, delivery.numbers = delivery.numbers[:size], delivery.numbers[size:]
        return Delivery(ticket, numbers, delivery.batch)


class Latest:
    """The checkpoint that was asked for last, and how often one was.

    Attributes:
        count: how often; it stands for all before it.
        newest: sequence number and offset of the last; None while there is none.
    """

    __slots__ = ("count", "newest")

    def __init__(self) -> None:
        self.count = 0
        self.newest: tuple[int, str] | None = None

    @property
    def position(self) -> Position | None:
        """The last; None while there is none."""
        return self.newest and Position(*self.newest)
