# Derived from _async/checkpoint_manager.py by tools/unasync.py; edit that file.
"""What a user writes for one partition, and what it is given."""

from typing import overload

from azure.eventhub import CloseReason, EventData, PartitionContext

from eventhub_checkpoints._shared.fields import checked_offset, checked_sequence_number
from eventhub_checkpoints.errors import InvalidRecordError
from eventhub_checkpoints.processing._sync.delivery_tracker import Apart, Work, position_of
from eventhub_checkpoints.processing.watermark import Position


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

    def initialize(self) -> None:
        """Called once, and finished before the first events are given.

        Where it raises, nothing is processed: the partition is closed when its next events arrive,
        and claimed anew.
        """

    def process_events(self, events: list[EventData]) -> None:
        """Called with the next events, in order; they are finished when it returns.

        An error that it raises is told to `process_error`, and the events are given again; see
        `EventProcessor`.

        Args:
            events: at most `max_batch_size`; none where `max_wait_time` has passed without any.
        """
        raise NotImplementedError(f"{type(self).__name__} has no process_events")

    def process_error(self, error: Exception) -> None:
        """Called with what another method raised, or what the client says of this partition.

        An aio client may say something while `process_events` runs. What this raises itself goes
        to `on_error`.
        """

    def close(self, reason: CloseReason) -> None:
        """Called once, when nothing is processed any more; the last checkpoint follows.

        It is called after an `initialize` that raised, too.

        Args:
            reason: `SHUTDOWN` where the processor stops; `OWNERSHIP_LOST` where another owner has
                taken the partition, and after any error of receiving.
        """


class CheckpointManager:
    """Saves how far one partition was processed, for one claim of it."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @overload
    def update_checkpoint(self, event: EventData) -> bool: ...

    @overload
    def update_checkpoint(self, offset: str | None, sequence_number: int, /) -> bool: ...

    @overload
    def update_checkpoint(self, *, offset: str | None = None, sequence_number: int) -> bool: ...

    def update_checkpoint(
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
            return self._work.save(Position(number, checked_offset(event or offset, number)))
        if not hasattr(event, "sequence_number"):
            raise InvalidRecordError("event", type(event), "an event, or an offset as text")
        return self._work.save(position_of(event))

    def track(self, event: EventData) -> Apart:
        """Have an event finished apart, so that `process_events` may return before it is done.

        Args:
            event: one of those that `process_events` was given and has not returned from.

        Raises:
            InvalidRecordError: it is none of these.
        """
        return self._work.take_out(event)
