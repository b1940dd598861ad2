"""What a handler was given, and which of it is finished."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eventhub_checkpoints.processing.watermark import Position, Ticket, Watermark


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
