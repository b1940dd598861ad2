"""Reading of one range, or of a partition without an end, with detection of missing events."""

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import wait
from typing import TypeVar

from eventhub_checkpoints._shared.client import OWN_GROUP
from eventhub_checkpoints._shared.workers import in_daemon_thread
from eventhub_checkpoints.errors import HubUnavailableError, InvalidCheckpointError
from eventhub_checkpoints.receive.address import (
    STOP_CHECK,
    WHOLE,
    Address,
    OpenStream,
    PartitionProperties,
    StoppedError,
)
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings, runs
from eventhub_checkpoints.receive.read_plan import ahead_of_end, expired, report
from eventhub_checkpoints.records import MOST_INT64

GAP_CHECK_EVERY = 1.0
"""Seconds between two checks of gaps: a compacted hub has thousands."""


class RangeReader:
    """Reader of one range, which tracks what is left and whether any events are missing.

    Rule 1: an event below `next` was seen before (a reconnect repeats events) and is dropped.
    Rule 2: a jump over `next` is a gap. It is compaction unless the hub's first event lies
    after the start of the gap: then the events had expired before they could be read.

    Attributes:
        portion: of its streams; may be replaced between two parts.
        tick: seconds without an event after which a part without rows is yielded, likewise.
    """

    def __init__(
        self,
        address: Address,
        offsets: OffsetRange,
        settings: ReadSettings,
        open_stream: OpenStream | None = None,
    ) -> None:
        self.address = address
        self.partition_id = offsets.partition_id
        self.settings = settings
        self.next = offsets.from_sequence_number
        self.until = offsets.until_sequence_number
        self.portion = WHOLE
        self.tick = math.inf
        self._open_stream = open_stream or address.open_stream
        self._delivered = False
        self._trouble = ""
        self._gap: int | None = None
        self._gaps_checked = float("-inf")

    @property
    def is_done(self) -> bool:
        """Return whether the range has been read to its end."""
        return self.next >= self.until

    def parts(self) -> Generator[Columns, None, None]:
        """Yield the events of the range as they arrive.

        A silent receiver is replaced once before its silence counts: a connection can die
        without an error. A position or a consumer group that the hub does not have also causes
        silence, as the client keeps retrying and does not report it.
        """
        silent = False
        while not self.is_done:
            begin, refusal = self.next, None
            try:
                yield from self._until_silent()
            except InvalidCheckpointError as error:
                refusal = error
            if not self.is_done:
                here, silent = (self.next, self.until), silent and self.next == begin
                self._explain_silence(believed=silent and refusal is None)
                if refusal is not None and here == (self.next, self.until):
                    raise refusal
                silent = True
        self._check_gap(now=float("inf"))

    def _until_silent(self) -> Iterator[Columns]:
        patience = self.settings.receiver_timeout
        with self._open_stream(self.partition_id, self.next, self.until, self.settings) as stream:
            begin, moved = self.next, time.monotonic()
            while not self.is_done:
                stream.portion = self.portion
                columns = stream.next(min(patience, self.tick))
                if not columns and stream.is_away:
                    moved = time.monotonic()  # the stream gives up itself
                    yield Columns()
                    continue
                if self.next > begin:
                    begin, moved = self.next, time.monotonic()
                if not columns and self._may_wait(time.monotonic() - moved):
                    yield Columns()
                    continue
                # A client that cannot decode an event reopens its receiver again and again, and
                # repeats the events before it each time.
                is_late = time.monotonic() > moved + patience
                is_stuck = is_late and columns and max(columns.numbers) < begin
                if is_stuck or (not columns and stream.reached <= self.next):
                    # That of an earlier receiver if this one was merely silent.
                    self._trouble = stream.trouble or self._trouble
                    return
                if columns:
                    self._trouble = ""
                    # This frame must not keep the events while the reader works on them.
                    received, columns = [self._within(columns)], None
                    yield received.pop()
                if self.next < min(stream.reached, self.until):
                    # By rule 2, no event has these sequence numbers.
                    self._gap = self.next if self._gap is None else self._gap
                    self.next = min(stream.reached, self.until)

    def _may_wait(self, silent_for: float) -> bool:
        """Return whether no events for so long (s) need no explanation."""
        return False

    def _within(self, columns: Columns) -> Columns:
        self._delivered = True
        following = self.next + len(columns)
        if columns.numbers == [*range(self.next, following)]:
            kept = columns if following <= self.until else columns.part(0, self.until - self.next)
            self.next = min(following, self.until)
        else:
            rows = self._rows_within(columns.numbers)
            kept = Columns.joined(columns.part(begin, end) for begin, end in runs(rows))
        self._check_gap(time.monotonic())
        return kept

    def _rows_within(self, numbers: Sequence[int]) -> list[int]:
        """Return the indexes of events to keep by rules 1 and 2, and before `until`."""
        kept: list[int] = []
        for row, number in enumerate(numbers):
            if number < self.next:
                continue
            if number > self.next and self._gap is None:
                self._gap = self.next
            self.next = min(number + 1, self.until)
            if number >= self.until:
                break
            kept.append(row)
        return kept

    def _check_gap(self, now: float) -> None:
        if self._gap is None or now < self._gaps_checked + GAP_CHECK_EVERY:
            return
        self._gaps_checked = now
        begin, self._gap = self._gap, None
        properties = self._properties()
        if begin < properties.first_sequence_number:
            report(expired(self.address, begin, properties, self.until), self.settings)

    def _explain_silence(self, believed: bool) -> None:
        """Query the hub for the reason of the silence, and skip events removed by retention.

        Silence is never taken for compaction. A receiver has no upper bound, and compaction
        keeps a partition's newest event, so an admitted receiver gets an event at or after `next`.
        (A newest event that was a tombstone does expire. Failing then until a next event arrives
        is the price, as this looks the same as a refused receiver.)

        Raises:
            DataLossError: the missing events are gone.
            HubUnavailableError: they exist, and a second receiver got nothing either.
        """
        properties = self._properties()
        if self.next < properties.first_sequence_number:
            report(expired(self.address, self.next, properties, self.until), self.settings)
            self.next = min(properties.first_sequence_number, self.until)
        elif properties.next_sequence_number < self.until:
            report(ahead_of_end(self.address, self.until, properties), self.settings)
            self.until = max(self.next, properties.next_sequence_number)
        elif believed:
            raise self._unexplained(properties.next_sequence_number - 1)

    def _unexplained(self, newest: int) -> HubUnavailableError:
        """Return the error for events that the hub holds but never, or no longer, delivers."""
        partition = f"partition {self.partition_id} of {self.address}"
        seconds = self.settings.receiver_timeout
        if self._trouble:
            return HubUnavailableError(
                f"{partition} delivered nothing from sequence number {self.next} on although it "
                f"holds events up to {newest}: {self._trouble}"
            )
        if not self._delivered:
            return HubUnavailableError(
                f"{partition} delivered nothing to consumer group "
                f"{self.address.consumer_group!r} within {2 * seconds:g} s although it holds "
                f"events up to {newest}: does the group exist, and may it be read? Do "
                f"consumers of the group hold the partition? {OWN_GROUP}"
            )
        return HubUnavailableError(
            f"{partition} delivered nothing from sequence number {self.next} on for {seconds:g} s, "
            f"twice, although it holds events up to {newest}; try again, or set a longer "
            "receiverTimeout"
        )

    def _properties(self) -> PartitionProperties:
        ids, timeout = [self.partition_id], self.settings.operation_timeout
        return partition_properties(self.address, ids, timeout=timeout)[self.partition_id]


class TailReader(RangeReader):
    """Reader of a partition from a sequence number on, without an end.

    Its parts end only with an error; one without rows is yielded after each `tick`.

    Args:
        address: the hub.
        partition_id: which partition.
        start: sequence number of the first event.
        settings: how it is read.
        stopped: ends the wait for an answer of the hub, by a `StoppedError`.
    """

    def __init__(
        self,
        address: Address,
        partition_id: str,
        start: int,
        settings: ReadSettings,
        stopped: threading.Event,
    ) -> None:
        super().__init__(address, OffsetRange(partition_id, start, MOST_INT64), settings)
        self._stopped = stopped
        self._asked_at = time.monotonic()

    def _may_wait(self, silent_for: float) -> bool:
        patience = self.settings.receiver_timeout
        if silent_for < patience or time.monotonic() < self._asked_at + patience:
            return True
        self._asked_at = time.monotonic()
        return self._properties().next_sequence_number == self.next

    def _explain_silence(self, believed: bool) -> None:
        properties = self._properties()
        first, following = properties.first_sequence_number, properties.next_sequence_number
        if self.next < first:
            report(expired(self.address, self.next, properties), self.settings)
            self.next = first
        elif self.next > following:
            report(ahead_of_end(self.address, self.next, properties), self.settings)
            self.next = first
        elif believed and self.next < following:
            raise self._unexplained(following - 1)

    def _properties(self) -> PartitionProperties:
        return unless_stopped(self._stopped, super()._properties)


T = TypeVar("T")


def unless_stopped(stopped: threading.Event, ask: Callable[[], T]) -> T:
    """Return the answer to a question that may wait for a hub for as long as its time limit.

    Raises:
        StoppedError: reading was stopped before the answer came.
    """
    answer = in_daemon_thread(ask)
    while not wait([answer], STOP_CHECK).done:
        if stopped.is_set():
            raise StoppedError
    return answer.result()
