"""Positions up to which all events of a partition are finished.

`Watermark` follows events that finish in any order, one by one or in batches, and `Latest` the
checkpoints of a program that saves them itself.
"""

import math
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple


class Position(NamedTuple):
    """Position of an event in its partition, as stored in a checkpoint.

    Attributes:
        sequence_number: of the event; counts the events of one partition from 0.
        offset: opaque string, never compared; `""` if unknown.
    """

    sequence_number: int
    offset: str


class InFlightEvent:
    """Started event, or several consecutive ones that finish together.

    Attributes:
        position: of the (last) event.
        size: number of events that it stands for.
        is_done: whether it was finished.
        has_failed: whether processing failed; the position then stays before the event.
    """

    __slots__ = ("_watermark", "has_failed", "is_done", "position", "size")

    def __init__(self, watermark: "Watermark", position: tuple[int, str], size: int = 1) -> None:
        self._watermark = watermark
        self.position = position
        self.size = size
        self.is_done = False
        self.has_failed = False

    def done(self) -> None:
        """Finish the event; a second call has no effect."""
        self.is_done = True
        unpassed = self._watermark.unpassed
        if unpassed and unpassed[0] is self:
            self._watermark.move()

    def failed(self) -> None:
        """Mark the event as failed: the position does not pass it unless `done` is called later."""
        self.has_failed = True


class Row(NamedTuple):
    """Consecutive events of a batch.

    Attributes:
        numbers: their sequence numbers, ascending; with gaps if the hub is compacted.
        last: position of the last event.
    """

    numbers: Sequence[int]
    last: Position


class Delivery(InFlightEvent):
    """Consecutive events of a batch that are finished together.

    Attributes:
        numbers: their sequence numbers.
        batch: number of the batch in which they were delivered.
    """

    __slots__ = ("batch", "numbers")

    def __init__(
        self,
        watermark: "Watermark",
        position: tuple[int, str],
        numbers: Sequence[int],
        batch: int,
    ) -> None:
        super().__init__(watermark, position, len(numbers))
        self.numbers = numbers
        self.batch = batch


class Watermark:
    """Low watermark of one partition in one session: the position that may be saved.

    Events may finish in any order: one by one (`track`, `enter`), or in the batches that a handler
    is called with (`begin`, `finish`), of which single events may be taken out. Tracking and
    finishing an event take constant time, since the position passes each event once.

    Args:
        max_pending: number of started events after the position at which `is_full` is true.

    Attributes:
        begun: number of started events.
        count: events in the finished prefix.
        unpassed: events that the position has not passed, in the order of arrival.
        newest: highest sequence number of all batches; minus infinity if there was none.
    """

    __slots__ = (
        *("_batch", "_passed", "_unfinished", "begun", "count", "max_pending", "newest"),
        "unpassed",
    )

    def __init__(self, max_pending: int = sys.maxsize) -> None:
        self.max_pending = max_pending
        self.begun = 0
        self.count = 0
        self.unpassed: deque[InFlightEvent] = deque()
        self.newest = -math.inf
        self._passed: tuple[int, str] | None = None
        self._batch = 0
        self._unfinished: list[Delivery] = []

    @property
    def position(self) -> Position | None:
        """Position of the last event of the finished prefix; None if there is none yet."""
        # Created on demand: far more events are passed than saved.
        return self._passed and Position(*self._passed)

    @property
    def pending(self) -> int:
        """Number of started events after the position."""
        return self.begun - self.count

    @property
    def first_unpassed(self) -> InFlightEvent | None:
        """First event that the position has not passed; None if there is none."""
        try:
            return self.unpassed[0]
        except IndexError:  # not checked before: another thread may pass the last event meanwhile
            return None

    @property
    def is_full(self) -> bool:
        """Return whether no more events should be started for now."""
        return self.pending >= self.max_pending

    @property
    def is_settled(self) -> bool:
        """Return whether the position cannot advance: no event is pending, or the next failed."""
        first = self.first_unpassed
        return first is None or first.has_failed

    def track(self, position: tuple[int, str], size: int = 1) -> InFlightEvent:
        """Start an event, or the last of several consecutive ones; call it in order of arrival."""
        event = InFlightEvent(self, position, size)
        self.enter(event)
        return event

    def enter(self, event: InFlightEvent) -> None:
        """Start an event that the caller has created; call it in the order of arrival."""
        self.unpassed.append(event)
        self.begun += event.size

    def begin(self, rows: Sequence[Row]) -> None:
        """Start the events of the next batch; call it in the order of arrival.

        Args:
            rows: one, or several if sequence numbers decrease within the batch.
        """
        self._batch += 1
        for numbers, last in rows:
            delivery = Delivery(self, last, numbers, self._batch)
            self.enter(delivery)
            self._unfinished.append(delivery)
            self.newest = max(self.newest, last.sequence_number)

    def finish(self, position: Position | None = None) -> None:
        """Finish the events of all batches up to and including a position; None: all of them."""
        if position is None:
            for delivery in self._unfinished:
                delivery.done()
            self._unfinished.clear()
            return
        for delivery in list(self._unfinished):
            size = bisect_right(delivery.numbers, position.sequence_number)
            if size == len(delivery.numbers):
                delivery.done()
                self._unfinished.remove(delivery)
            elif size:
                first = InFlightEvent(self, position, size)
                self._cut(delivery, size, first)
                first.done()

    def take_out(self, event: InFlightEvent, previous: Position | None) -> bool:
        """Replace one event of the last batch by an object that is finished separately.

        Args:
            event: the object, at the position of the event.
            previous: position of the event before it in that batch; None: it is the first.

        Returns:
            Whether it was replaced; if not, it is finished, or was taken out before.
        """
        number = event.position[0]
        for at, delivery in enumerate(self._unfinished):
            if delivery.batch != self._batch or number not in delivery.numbers:
                continue
            before = bisect_right(delivery.numbers, number) - 1
            if before:
                neighbour = delivery.numbers[before - 1]
                if previous is None or previous.sequence_number != neighbour:
                    # The batch holds the event twice, and this is the other occurrence.
                    continue
                numbers = delivery.numbers[:before]
                first = Delivery(self, previous, numbers, delivery.batch)
                self._cut(delivery, before, first)
                self._unfinished.insert(at, first)
            if len(delivery.numbers) > 1:
                self._cut(delivery, 1, event)
            else:
                self._unfinished.remove(delivery)
                self.unpassed[self._index(delivery)] = event
            return True
        return False

    def move(self) -> None:
        """Advance the position past the finished events at the head.

        After a link was reopened, the client delivers again the events that it had buffered, so
        sequence numbers may repeat and decrease within one session. A repeated event is processed
        like any other, but does not move the position back.

        Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`: the buffer is
        kept, and the new link starts after the last event that was delivered from it.
        """
        unpassed, count, newest = self.unpassed, self.count, self._passed
        while unpassed and unpassed[0].is_done:
            event = unpassed.popleft()
            count += event.size
            if newest is None or event.position[0] > newest[0]:
                newest = event.position
        self.count, self._passed = count, newest

    def _cut(self, delivery: Delivery, size: int, first: InFlightEvent) -> None:
        """Have another object stand for the first `size` events of a delivery."""
        delivery.numbers = delivery.numbers[size:]
        delivery.size -= size
        self.unpassed.insert(self._index(delivery), first)

    def _index(self, event: InFlightEvent) -> int:
        at = len(self.unpassed) - 1
        # From the end: events that are split were tracked recently.
        while self.unpassed[at] is not event:
            at -= 1
        return at


class Latest:
    """Last requested checkpoint, and the number of requests.

    Threads record requests without a lock, since `newest` is replaced as a whole. A reader that
    takes `count` before `position` counts no request that the position does not stand for.

    Attributes:
        counter: counts the requests.
        newest: number of the last one, its sequence number and its offset.
        at_once: last position that was written at once, in place of the `newest` of that number.
        pending: events after the position; none, since each request stands for all before it.
    """

    __slots__ = ("at_once", "counter", "newest")
    pending = 0

    def __init__(self) -> None:
        self.counter = count(1)
        self.newest = 0, 0, ""
        self.at_once: tuple[int, Position | None] = 0, None

    @property
    def count(self) -> int:
        """Number of requests; the last checkpoint stands for all of them."""
        return self.newest[0]

    @property
    def position(self) -> Position | None:
        """Last requested position; None if there is none yet."""
        number, sequence_number, offset = self.newest
        replaced, position = self.at_once
        return position if replaced == number else Position(sequence_number, offset)
