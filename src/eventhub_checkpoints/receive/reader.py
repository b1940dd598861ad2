"""Reading of one range, with detection of missing events."""

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise

from eventhub_checkpoints.errors import DataLossError, HubUnavailableError
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.read_plan import ahead_of_end, expired
from eventhub_checkpoints.receive.stream import Stream

_LOGGER = logging.getLogger(__name__)

GAP_CHECK_EVERY = 1.0
"""Seconds between two checks of gaps: a compacted hub has thousands."""


class RangeReader:
    """Reader of one range, which tracks what is left and whether any events are missing.

    Rule 1: an event below `next` was seen before (a reconnect repeats events) and is dropped.
    Rule 2: a jump over `next` is a gap. It is compaction unless the hub's first event lies
    behind the start of the gap: then the events had expired before they could be read.
    """

    def __init__(self, address: Address, wanted: OffsetRange, settings: ReadSettings) -> None:
        self.address = address
        self.partition_id = wanted.partition_id
        self.settings = settings
        self.next = wanted.from_sequence_number
        self.until = wanted.until_sequence_number
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
            begin = self.next
            yield from self._until_silent()
            if not self.is_done:
                silent = silent and self.next == begin
                self._explain_silence(believed=silent)
                silent = True
        self._check_gap(now=float("inf"))

    def _until_silent(self) -> Iterator[Columns]:
        patience = self.settings.receiver_timeout
        with self._open() as stream:
            begin, moved = self.next, time.monotonic()
            while not self.is_done:
                found = stream.next(patience)
                if self.next > begin:
                    begin, moved = self.next, time.monotonic()
                is_stuck = time.monotonic() > moved + patience and repeats(found, begin)
                if is_stuck or (not found and stream.reached <= self.next):
                    self._trouble = stream.trouble
                    return
                if found:
                    yield self._within(found)
                self._pass_over(stream.reached)

    def _open(self) -> Stream:
        return self.address.open_stream(self.partition_id, self.next, self.until, self.settings)

    def _within(self, found: Columns) -> Columns:
        self._delivered = True
        following = self.next + len(found)
        if found.numbers == [*range(self.next, following)]:
            kept = found if following <= self.until else found.part(0, self.until - self.next)
            self.next = min(following, self.until)
        else:
            places = self._sorted_out(found.numbers)
            kept = Columns.joined(found.part(begin, end) for begin, end in stretches(places))
        self._check_gap(time.monotonic())
        return kept

    def _sorted_out(self, numbers: Sequence[int]) -> list[int]:
        """Return the indexes of events to keep by rules 1 and 2, and before `until`."""
        kept: list[int] = []
        for place, number in enumerate(numbers):
            if number < self.next:
                continue
            if number > self.next and self._gap is None:
                self._gap = self.next
            self.next = min(number + 1, self.until)
            if number >= self.until:
                break
            kept.append(place)
        return kept

    def _pass_over(self, reached: int) -> None:
        """Skip sequence numbers that no event has, by rule 2."""
        if self.next < min(reached, self.until):
            if self._gap is None:
                self._gap = self.next
            self.next = min(reached, self.until)

    def _check_gap(self, now: float) -> None:
        if self._gap is None or now < self._gaps_checked + GAP_CHECK_EVERY:
            return
        self._gaps_checked = now
        begin, self._gap = self._gap, None
        found = self._properties()
        if begin < found.first_sequence_number:
            self._lost(expired(self.address, begin, found))

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
        found = self._properties()
        if not self._moved_by_loss(found) and believed:
            raise self._unexplained(found)

    def _unexplained(self, found: PartitionProperties) -> HubUnavailableError:
        """Return the error for events that the hub holds but never, or no longer, delivers."""
        newest = found.next_sequence_number - 1
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
                f"events up to {newest}: does the group exist, and may it be read?"
            )
        return HubUnavailableError(
            f"{partition} delivered nothing from sequence number {self.next} on for {seconds:g} s, "
            f"twice, although it holds events up to {newest}; try again, or give a longer "
            "receiverTimeout"
        )

    def _moved_by_loss(self, found: PartitionProperties) -> bool:
        """Return whether the hub lacks the rest of the range; cut the range to what it has."""
        if self.next < found.first_sequence_number:
            self._lost(expired(self.address, self.next, found))
            self.next = min(found.first_sequence_number, self.until)
        elif found.next_sequence_number < self.until:
            self._lost(ahead_of_end(self.address, self.until, found))
            self.until = max(self.next, found.next_sequence_number)
        else:
            return False
        return True

    def _properties(self) -> PartitionProperties:
        timeout = self.settings.operation_timeout
        found = partition_properties(self.address, [self.partition_id], timeout=timeout)
        return found[self.partition_id]

    def _lost(self, loss: DataLossError) -> None:
        if self.settings.fail_on_data_loss:
            raise loss
        _LOGGER.warning("%s", loss)


def repeats(found: Columns | None, begin: int) -> bool:
    """Return whether there are events, and all of them are before the first wanted one.

    A client that cannot decode an event reopens its receiver again and again, and repeats the
    events before it each time.
    """
    return bool(found) and found is not None and max(found.numbers) < begin


def stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of consecutive indexes."""
    breaks = [at for at in range(1, len(places)) if places[at] != places[at - 1] + 1]
    for begin, end in pairwise([0, *breaks, len(places)] if places else []):
        yield places[begin], places[end - 1] + 1
