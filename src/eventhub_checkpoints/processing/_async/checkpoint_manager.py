"""Events of a session until they are finished and saved, and what a processor may save itself."""

import math
from collections.abc import Callable
from types import TracebackType
from typing import Self, overload

from azure.eventhub import CloseReason, EventData
from azure.eventhub.aio import PartitionContext

from eventhub_checkpoints._shared._async.client_check import ContextGuard
from eventhub_checkpoints._shared.fields import checked_offset, checked_sequence_number
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._async.session import PartitionSession
from eventhub_checkpoints.processing.options import Options
from eventhub_checkpoints.processing.watermark import Deliveries, Position, Row, Ticket


class Apart(ContextGuard):
    """An event that `process_events` may leave behind unfinished; any thread may finish it.

    Leaving an `async with` of it finishes it; leaving that by an exception gives it up.
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
        """Finish the event; a second time, or after the claim has ended, changes nothing."""
        self._work.settle(self._ticket, self._ticket.done)

    def failed(self) -> None:
        """Give the event up: it is read again when the partition is claimed anew.

        The position stays before it. When `max_pending` events wait behind it, the partition is
        closed, so that it is claimed anew.
        """
        self._work.settle(self._ticket, self._ticket.failed)


class DeliveryTracker:
    """What a processor was given in one claim of a partition, and how far that is done.

    Args:
        claim: what is finished and saved.
        options: whether positions are saved, and how long saving at once may take.

    Attributes:
        apart: events that were left behind, and are neither done nor failed.
        newest: sequence number of the newest event that was given; infinity below 0: there is none.
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
        """Note what `process_events` is given next."""
        rows = rows_of(events)
        with self._claim.guard:
            self._given, self._places = events, {}
            self.newest = max(self.newest, max(row.last.sequence_number for row in rows))
            self._deliveries.begin(rows)

    def returned(self) -> None:
        """Nothing that was given can be left behind any more."""
        self._given, self._places = [], {}

    def finish(self, position: Position | None = None) -> None:
        """Finish what was given: up to a position, or all of it."""
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
        """Whether everything up to a position is finished."""
        reached = self._claim.watermark.position
        return reached is not None and position.sequence_number <= reached.sequence_number

    def take_out(self, event: EventData) -> Apart:
        """Have an event that was just given finished apart.

        Raises:
            InvalidRecordError: it was not.
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
        # One that was finished already, or left behind before, is not waited for again.
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
        """Finish up to a position and save it; whether it is stored.

        Raises:
            InvalidRecordError: no such event was given to the processor.
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
    """Where an event stands."""
    return Position(checked_sequence_number(event.sequence_number), event.offset or "")


def rows_of(events: list[EventData]) -> list[Row]:
    """The rows of a batch: after a link was opened anew it may fall back in its middle."""
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
    """Processes one partition, from when it is claimed until it is closed.

    A base class to take methods from; any class with `process_events` will do.

    Args:
        context: the client's context of the partition: `partition_id` and the names.
        checkpoints: saves how far the partition was processed.
    """

    def __init__(self, context: PartitionContext, checkpoints: "CheckpointManager") -> None:
        self.context = context
        self.checkpoints = checkpoints

    async def initialize(self) -> None:
        """Called once, and finished before the first events are given.

        Where it raises, nothing is processed: the partition is closed when its next events arrive,
        and claimed anew.
        """

    async def process_events(self, events: list[EventData]) -> None:
        """Called with the next events, in order; they are finished when it returns.

        An error that it raises is told to `process_error`, and the events are given again; see
        `EventProcessor`.

        Args:
            events: at most `max_batch_size`; none where `max_wait_time` has passed without any.
        """
        raise NotImplementedError(f"{type(self).__name__} has no process_events")

    async def process_error(self, error: Exception) -> None:
        """Called with what another method raised, or what the client says of this partition.

        An aio client may say something while `process_events` runs. What this raises itself goes
        to `on_error`.
        """

    async def close(self, reason: CloseReason) -> None:
        """Called once, when nothing is processed any more; the last checkpoint follows.

        It is called after an `initialize` that raised, too.

        Args:
            reason: `SHUTDOWN` where the processor stops; `OWNERSHIP_LOST` where another owner has
                taken the partition, and after any error of receiving.
        """


class CheckpointManager:
    """Saves how far one partition was processed, for one claim of it."""

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
        """Finish every event up to this one, and save that now.

        Takes an event, or an offset and a sequence number. An event that was given to `track` and
        is not done holds the position back all the same.

        Returns:
            Whether it is stored. If not, the error went to `on_error` and it is tried again beside
            the handler; or the claim is over, or nothing is saved at all.

        Raises:
            InvalidRecordError: the sequence number is none, or of an event that was not given to
                `process_events`.
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
        """Have an event finished apart, so that `process_events` may return before it is done.

        Args:
            event: one of those that `process_events` was given and has not returned from.

        Raises:
            InvalidRecordError: it is none of these.
        """
        return self._work.take_out(event)
