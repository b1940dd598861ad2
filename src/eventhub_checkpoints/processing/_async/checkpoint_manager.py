"""Events of a session until they are finished, and the checkpoints a processor may request."""

import math
from collections.abc import Callable
from types import TracebackType
from typing import Self, overload

from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.client_check import ContextGuard
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._async.session import PartitionSession
from eventhub_checkpoints.processing.options import Options
from eventhub_checkpoints.processing.watermark import Deliveries, Position, Row, Ticket
from eventhub_checkpoints.records import checked_offset, checked_sequence_number


class Apart(ContextGuard):
    """Event that is finished separately, after `process_events` has returned; by any thread.

    Leaving an `async with` block finishes it; leaving the block by an exception gives it up.
    """

    __slots__ = ("_ticket", "_work")
    twin = "EventProcessor"

    def __init__(self, work: "DeliveryTracker", ticket: Ticket) -> None:
        self._work = work
        self._ticket = ticket

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None:
            self.done()
        else:
            self.failed()

    def done(self) -> None:
        """Finish the event; has no effect a second time, or after the session has ended."""
        self._work.settle(self._ticket, self._ticket.done)

    def failed(self) -> None:
        """Give the event up: it is read again when the partition is claimed again.

        The position stays before it. When `max_pending` events wait behind it, the partition is
        closed, so that it is claimed again.
        """
        self._work.settle(self._ticket, self._ticket.failed)


class DeliveryTracker:
    """Events delivered to a processor in one session, and how many of them are finished.

    Args:
        claim: the session: what is finished and saved.
        options: whether positions are saved, and how long an immediate save may take.

    Attributes:
        apart: events that are finished separately, and are neither done nor failed.
        newest: sequence number of the newest delivered event; minus infinity if there is none.
    """

    def __init__(self, claim: PartitionSession, options: Options) -> None:
        self._claim = claim
        self._options = options
        self._deliveries = Deliveries(claim.watermark)
        self._given: list[EventData] = []
        self._places: dict[int, int] = {}
        self.apart: set[Ticket] = set()
        self.newest = -math.inf

    def begin(self, events: list[EventData]) -> None:
        """Record the events that `process_events` is called with next."""
        rows = rows_of(events)
        with self._claim.guard:
            self._given, self._places = events, {}
            self.newest = max(self.newest, max(row.last.sequence_number for row in rows))
            self._deliveries.begin(rows)

    def returned(self) -> None:
        """Record that `process_events` has returned: its events can no longer be tracked."""
        self._given, self._places = [], {}

    def finish(self, position: Position | None = None) -> None:
        """Finish delivered events: up to a position, or all of them."""
        with self._claim.guard:
            if position is None:
                self._deliveries.finish()
            else:
                self._deliveries.finish_until(position)
        self._moved()

    def _moved(self) -> None:
        if self._claim.watermark.count >= self._claim.progress.wake_count:
            self._claim.saver.wake()
        self._claim.changed()

    def has_passed(self, position: Position) -> bool:
        """Return whether everything up to a position is finished."""
        reached = self._claim.watermark.position
        return reached is not None and position.sequence_number <= reached.sequence_number

    def take_out(self, event: EventData) -> Apart:
        """Take an event out of the current batch, to be finished separately.

        Raises:
            InvalidRecordError: the event is not in the current batch.
        """
        if len(self._places) != len(self._given):
            self._places = {id(one): at for at, one in enumerate(self._given)}
        at = self._places.get(id(event))
        if at is None:
            expected = "one that process_events was given, and has not returned from"
            number = getattr(event, "sequence_number", type(event))
            raise InvalidRecordError("event", number, expected)
        position = position_of(event)
        previous = position_of(self._given[at - 1]) if at else None
        with self._claim.guard:
            ticket = self._deliveries.take_out(position, previous)
            if ticket is not None:
                self.apart.add(ticket)
        # An event that was finished already, or taken out before, is not waited for again.
        return Apart(self, ticket or Ticket(self._claim.watermark, position))

    def settle(self, ticket: Ticket, how: Callable[[], None]) -> None:
        """Finish or give up an event that was taken out."""
        with self._claim.guard:
            if ticket not in self.apart:
                return
            self.apart.discard(ticket)
            how()
        self._moved()

    async def save(self, position: Position) -> bool:
        """Finish the events up to a position and save it; return whether it is stored.

        Raises:
            InvalidRecordError: the processor was not called with such an event.
        """
        number = position.sequence_number
        if number > self.newest:
            raise InvalidRecordError("sequence_number", number, "one that process_events was given")
        self.finish(position)
        if self._claim.is_over or not self._options.save:
            return False
        is_saved = await self._claim.saver.flush(self._claim, self._options.write_timeout)
        return is_saved and self.has_passed(position)


def position_of(event: EventData) -> Position:
    """Return the position of an event."""
    return Position(checked_sequence_number(event.sequence_number), event.offset or "")


def rows_of(events: list[EventData]) -> list[Row]:
    """Return the rows of a batch: after a link was reopened, its numbers may decrease once."""
    first, last = position_of(events[0]), position_of(events[-1])
    numbers = range(first.sequence_number, last.sequence_number + 1)
    if len(numbers) == len(events):
        return [Row(numbers, last)]
    rows: list[tuple[list[int], Position]] = []
    for position in map(position_of, events):
        number = position.sequence_number
        if rows and rows[-1][0][-1] < number:
            rows[-1] = (rows[-1][0], position)
        else:
            rows.append(([], position))
        rows[-1][0].append(number)
    return [Row(*row) for row in rows]


class PartitionProcessor:
    """Processor of one partition, from when it is claimed until it is closed.

    A base class with empty methods; any class with `process_events` works as well.

    Args:
        context: the client's context of the partition: `partition_id` and the names.
        checkpoints: saves the position of the partition.
    """

    def __init__(self, context: PartitionContext, checkpoints: "CheckpointManager") -> None:
        self.context = context
        self.checkpoints = checkpoints

    async def initialize(self) -> None:
        """Prepare for the first events; called once, and finished before they are processed.

        If it raises, nothing is processed: the partition is closed when its next events arrive,
        and claimed again.
        """

    async def process_events(self, events: list[EventData]) -> None:
        """Process the next events, in order; they are finished when this returns.

        An exception is passed to `process_error`, and the events are processed again; see
        `EventProcessor`.

        Args:
            events: at most `max_batch_size`; empty if `max_wait_time` has passed without an event.
        """
        raise NotImplementedError(f"{type(self).__name__} has no process_events")

    async def process_error(self, error: Exception) -> None:
        """Handle an exception of another method, or an error that the client reports here.

        An aio client may report an error while `process_events` runs. An exception raised here is
        passed to `on_error`.
        """

    async def close(self, reason: CloseReason) -> None:
        """Clean up; called once, after the last event and before the last checkpoint.

        It is called even if `initialize` has raised.

        Args:
            reason: `SHUTDOWN` if the processor stops; `OWNERSHIP_LOST` if another owner has taken
                the partition, and after any error while receiving.
        """


class CheckpointManager:
    """Saves the position of one partition, for one session."""

    def __init__(self, work: DeliveryTracker) -> None:
        self._work = work

    @overload
    async def update_checkpoint(self, event: EventData) -> bool: ...

    @overload
    async def update_checkpoint(self, offset: str | None, sequence_number: int, /) -> bool: ...

    @overload
    async def update_checkpoint(
        self, *, offset: str | None = None, sequence_number: int
    ) -> bool: ...

    async def update_checkpoint(
        self,
        event: EventData | str | None = None,
        sequence_number: int | None = None,
        *,
        offset: str | None = None,
    ) -> bool:
        """Finish every event up to this one, and save the position now.

        Pass an event, or an offset and a sequence number. An event that was passed to `track` and
        is not done still holds the position back.

        Returns:
            Whether the position is stored. If not, either the error was passed to `on_error` and
            the write is retried in the background; or the session is over, or saving is disabled.

        Raises:
            InvalidRecordError: the sequence number is invalid, or that of an event with which
                `process_events` was not called.
        """
        if event is None and sequence_number is None:
            raise InvalidRecordError("event", None, "an event, or an offset and a sequence number")
        if event is None or isinstance(event, str):
            number = checked_sequence_number(sequence_number)
            return await self._work.save(Position(number, checked_offset(event or offset, number)))
        if not hasattr(event, "sequence_number"):
            raise InvalidRecordError("event", type(event), "an event, or an offset as text")
        return await self._work.save(position_of(event))

    def track(self, event: EventData) -> Apart:
        """Finish an event separately, so that `process_events` may return before it is done.

        Args:
            event: one of the events of the current call of `process_events`.

        Raises:
            InvalidRecordError: it is not one of them.
        """
        return self._work.take_out(event)
