"""Fast path: events of one partition, decoded from frames on the official client's connection."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints._shared.client import Failure, failure_of, reason
from eventhub_checkpoints.amqp.performatives import RECEIVER, Accepted, Disposition, encode_frame
from eventhub_checkpoints.receive.address import Stream
from eventhub_checkpoints.receive.amqp.decoder import CodecError, Deliveries
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.ranges import ReadSettings, runs
from eventhub_checkpoints.sdk.connection import OfficialConnection
from eventhub_checkpoints.sdk.fallback import FastPathError, StalledError, UnreadableFrameError
from eventhub_checkpoints.sdk.receiver import READ_SIZE, OfficialLink
from eventhub_checkpoints.sdk.stall import Silence

log = logging.getLogger(__name__)


GROWTH = 20
"""Factor over `prefetch`: the fast path buffers few events, so more may be in transit."""

BYTES_AHEAD = 32 * 2**20


class Credit:
    """Credit of one link, topped up when half of it is used.

    It does not extend past the end of the range, judged by sequence numbers, nor past
    `BYTES_AHEAD` of bodies, estimated by the size of those received. Events in transit wait in
    the sockets until they are read, so this bounds not memory but what is sent in vain.

    Args:
        start: sequence number of the first event.
        until: sequence number of the first event after the range.
        prefetch: the first credit, while the size of an event is unknown.
    """

    def __init__(self, start: int, until: int, prefetch: int) -> None:
        self._next, self._until = start, until
        self._first, self._most = prefetch, prefetch * GROWTH
        self._rows = self._size = 0
        self._outstanding = 0

    @property
    def is_used_up(self) -> bool:
        """Return whether the peer may send nothing more."""
        return self._outstanding <= 0

    def used(self, deliveries: int) -> None:
        """Count deliveries received."""
        self._outstanding -= deliveries

    def taken(self, columns: Columns) -> None:
        """Record that these events were taken; the next one has the next sequence number."""
        if columns:
            self._next = columns.numbers[-1] + 1
            self._rows += len(columns)
            self._size += columns.size

    def grant(self, waiting: int, *, urgent: bool = False) -> int | None:
        """Return the credit to grant now, counted from the last delivery; None for no change.

        Args:
            waiting: events received and not taken.
            urgent: a flow frame has to be sent anyway.
        """
        window = self._window()
        credit = min(window, max(0, self._until - self._next - waiting))
        is_due = credit > self._outstanding and self._outstanding <= window // 2
        if not (is_due or urgent):
            return None
        self._outstanding = max(credit, self._outstanding)
        return self._outstanding

    def _window(self) -> int:
        if not self._rows:
            return self._first
        size = max(1, self._size // self._rows)
        return max(1, min(self._most, BYTES_AHEAD // size))


OPEN_TIMEOUT = 30.0
"""Seconds for connection, token and link together; a token may take a while to fetch."""

L = TypeVar("L", bound=OfficialConnection)


class Opening(Generic[L]):
    """Link being opened in a background thread.

    The client's handshake waits for ever for a server that accepts a connection and sends
    nothing, and it waits without an error where its token's link is refused.

    Args:
        link: not yet opened.
        name: of the thread.
        seconds: limit of the attempt, at most `OPEN_TIMEOUT`.

    Attributes:
        began: when the attempt began, by `time.monotonic`.
        deadline: when the attempt times out, by `time.monotonic`.
    """

    def __init__(self, link: L, name: str, seconds: float) -> None:
        self._link, self._seconds = link, min(seconds, OPEN_TIMEOUT)
        self.began = time.monotonic()
        self.deadline = self.began + self._seconds
        self._is_wanted = True
        self._opened: Future[None] = Future()
        threading.Thread(target=self._open, name=f"open-{name}", daemon=True).start()

    def result(self, timeout: float) -> L | None:
        """Return the opened link; None if it takes longer than `timeout` (s).

        Raises:
            FastPathError: the client has changed.
            EventHubError: the attempt failed, or timed out.
        """
        if not wait([self._opened], timeout).done:
            if time.monotonic() < self.deadline:
                return None
            self.abandon()
            raise ConnectError(f"no link was attached within {round(self._seconds, 1):g} s")
        self._opened.result()
        return self._link

    def abandon(self) -> None:
        """Stop waiting; close the link, also if it is opened later."""
        self._is_wanted = False
        if not self._opened.done():
            self._link.interrupt()
        self._opened.add_done_callback(lambda _: self._link.close())

    def _open(self) -> None:
        try:
            self._link.open(lambda: self._is_wanted)
        except Exception as error:
            self._opened.set_exception(self._link.ended_by(error))
        else:
            self._opened.set_result(None)


REATTACH_TIMEOUT = 5.0
"""Seconds for a link over an open connection, which may be dead; then another is opened."""


class Reattaching:
    """Link being attached over the connection of an earlier one, while its result is waited for.

    Args:
        link: moved to a partition, and not yet opened.

    Attributes:
        began: when the attempt began, by `time.monotonic`.
        deadline: when the attempt times out, likewise.
    """

    def __init__(self, link: OfficialLink) -> None:
        self._link = link
        self.began = time.monotonic()
        self.deadline = self.began + REATTACH_TIMEOUT

    def result(self, timeout: float) -> OfficialLink | None:
        """Return the opened link, or raise, as `Opening` does."""
        until = time.monotonic() + timeout
        try:
            is_open = self._link.open(lambda: time.monotonic() < until)
        except Exception as error:
            raise self._link.ended_by(error) from error
        if is_open:
            return self._link
        if time.monotonic() < self.deadline:
            return None
        raise ConnectError(f"no link was attached within {REATTACH_TIMEOUT:g} s")

    def abandon(self) -> None:
        """Disconnect."""
        self._link.close()


AnyOpening = Opening[OfficialLink] | Reattaching

IDLE_FOR = 120.0
"""Seconds for which an idle connection is used again. The service closes one without links after
300 s, and Azure's networks forget one without traffic after 240 s.

Source: Azure Service Bus documentation, "AMQP errors"; Azure Load Balancer documentation.
"""


class LinkSource:
    """Source of links to the partitions of a hub, one after another over the same connection.

    Args:
        client: of the hub; closed with the source.
        consumer_group: the group that reads the events.
    """

    def __init__(self, client: EventHubConsumerClient, consumer_group: str) -> None:
        self._client, self._consumer_group = client, consumer_group
        self._idle: OfficialLink | None = None
        self._idle_since = time.monotonic()

    @property
    def is_usable(self) -> bool:
        """Return whether the connection was used lately."""
        return time.monotonic() < self._idle_since + IDLE_FOR

    def opening(
        self, partition_id: str, start: int, owner_level: int | None, seconds: float
    ) -> AnyOpening:
        """Begin to open a link that starts at a sequence number.

        Args:
            partition_id: which partition.
            start: sequence number of the first event.
            owner_level: see `ReadSettings`. A link of another level opens another connection.
            seconds: in which another connection has to be open.

        Raises:
            FastPathError: the client has changed.
        """
        link, self._idle = self._idle, None
        if link is not None and link.owner_level != owner_level:
            link.close()
            link = None
        if link is None:
            link = OfficialLink(
                self._client, self._consumer_group, partition_id, start, owner_level
            )
            return Opening(link, partition_id, seconds)
        try:
            link.move(partition_id, start)
        except FastPathError:
            link.close()
            raise
        return Reattaching(link)

    def end(self, frames: "LinkFrames") -> None:
        """Detach a link; keep the connection for the next one, unless events may still follow."""
        if frames.is_over:
            frames.link.detach()
            self._idle, self._idle_since = frames.link, time.monotonic()
        else:
            frames.link.close()

    def close(self) -> None:
        """Disconnect; never raises."""
        if self._idle is not None:
            self._idle.close()
        self._client.close()


class LinkFrames:
    """Reader of the frames of a link that the official client has opened.

    The client reads a frame whenever it waits for one: for the answer to a token renewal or to a
    detach. It gets every frame except the transfers of this link, so frames stay in order and no
    event passes through its decoder.

    Args:
        link: opened, without credit.
        credit: how much credit to grant.

    Attributes:
        deliveries: events received over this link, and those not taken.
    """

    def __init__(self, link: OfficialLink, credit: Credit) -> None:
        self.link, self._credit = link, credit
        self.deliveries = Deliveries(
            channel=link.channel, handle=link.handle, max_frame_size=link.max_frame_size
        )
        self._others: deque[bytes] = deque()
        self._broken: CodecError | None = None
        self._counted = (0, 0)
        self._take_in(link.take_over(self._read))

    @property
    def is_awaited(self) -> bool:
        """Return whether the peer may send something on this link."""
        return not self._credit.is_used_up

    @property
    def is_over(self) -> bool:
        """Return whether everything that the peer may send on this link was read and handed on."""
        is_read = self.deliveries.is_at_boundary and not self._others and self._broken is None
        return is_read and self._credit.is_used_up

    def receive(self, rows: int, size: int) -> None:
        """Wait once for bytes, then decode what is available, up to `rows` rows or `size` bytes.

        Raises:
            UnreadableFrameError: a frame cannot be read; earlier events can be taken.
            Exception: the error that ended the link or connection.
        """
        deliveries = self.deliveries
        self._step()
        while 0 < deliveries.rows < rows and deliveries.size < size and self.link.has_more:
            self._step(is_busy=True)

    def take(self, most: int | None = None, fields: Collection[str] | None = None) -> Columns:
        """Return the received rows, at most `most`, and remove them; see `Columns.of`."""
        columns = self.deliveries.take(most, fields)
        self._credit.taken(columns)
        return columns

    def _step(self, *, is_busy: bool = False) -> None:
        credit = self._credit.grant(self.deliveries.rows, urgent=self.link.window_is_low)
        if credit is not None:
            self.link.grant(credit)
        if not (is_busy and self._read_on()):
            self.link.work()
        if self._broken is not None:
            # Recorded, not raised where it happened: the client swallows some errors there.
            text = f"a frame cannot be read: {self._broken}"
            raise UnreadableFrameError(text) from self._broken

    def _read_on(self) -> bool:
        """Read once without the client; return False if the client has to take part.

        A call of the client costs as much as five events of 2 KiB, and a read brings a hundred.
        """
        if self._others:
            return False
        try:
            data = self._read_ready()
        except OSError:
            return False  # the client meets it again, and knows what follows
        self._take_in(data)
        return True

    def _read(self, *_: Any, **__: Any) -> tuple[memoryview, int, memoryview]:
        """Return head, channel and body of the client's next frame; replaces the client's function.

        Raises:
            TimeoutError: there is none now; events may have arrived.
            OSError: the connection is broken.
        """
        if not self._others and self._broken is None:
            self._take_in(self._read_ready())
        if not self._others:
            raise TimeoutError
        frame = memoryview(self._others.popleft())
        return frame[:8], int.from_bytes(frame[6:8], "big"), frame[4 * frame[4] :]

    def _read_ready(self) -> bytes:
        """Wait for the first bytes, then return all that have arrived, about `READ_SIZE`."""
        parts = [self.link.read_some()]
        size = len(parts[0])
        # TLS returns 16 KiB at a time, a WebSocket one message.
        while size < READ_SIZE and self.link.has_more:
            try:
                parts.append(self.link.read_some())
            except OSError:
                break  # the next call meets it again; earlier events must not be lost
            size += len(parts[-1])
        return b"".join(parts)

    def _take_in(self, data: bytes) -> None:
        try:
            self._others += self.deliveries.feed(data)
        except CodecError as error:
            self._broken = error
        transfers, deliveries = self.deliveries.transfers, self.deliveries.deliveries
        self.link.count(transfers - self._counted[0], deliveries - self._counted[1])
        self._credit.used(deliveries - self._counted[1])
        self._counted = transfers, deliveries
        if self.deliveries.unsettled:
            self._settle()

    def _settle(self) -> None:
        """Accept deliveries that the peer sent unsettled; the client would never settle them."""
        ids, self.deliveries.unsettled = self.deliveries.unsettled, []
        frames = (
            Disposition(role=RECEIVER, first=first, last=end - 1, settled=True, state=Accepted())
            for first, end in runs(ids)
        )
        channel = self.link.outgoing_channel
        self.link.send(b"".join(encode_frame(frame, channel) for frame in frames))


class FastStream(Stream):
    """Events of one partition, read on demand.

    No thread receives ahead: what the reader does not take waits in the sockets, and memory is
    bounded by one return, of about the size of its `portion`. Token renewal and heartbeats
    happen in `next`. A reader that pauses for longer than the service waits (minutes) loses its
    connection, and its next call reconnects where it left off, as after any other break.

    Args:
        source: of links; stays open.
        partition_id: which partition.
        start: sequence number of the first event.
        until: sequence number of the first event after the range; no later one is requested.
        settings: how a range is read.
        outage: for how long a link that cannot be opened is tried again.
        ask_newest: asks the hub, in the background, for the sequence number of the newest event;
            -1 if there is none.

    Raises:
        FastPathError: the client has changed.
    """

    def __init__(
        self,
        source: LinkSource,
        partition_id: str,
        start: int,
        until: int,
        settings: ReadSettings,
        outage: Outage,
        ask_newest: Callable[[], Future[int]],
    ) -> None:
        self._source, self._settings, self._outage = source, settings, outage
        self._partition_id, self._next, self._until = partition_id, start, until
        self._closed = False
        self._not_before = 0.0
        self._failure: Exception | None = None
        self._trouble = ""
        self._frames: LinkFrames | None = None
        self._silence = Silence(ask_newest, time.monotonic())
        self._transfers = 0
        self._opening: AnyOpening | None = self._next_opening()

    @property
    def trouble(self) -> str:
        return self._trouble

    @property
    def is_away(self) -> bool:
        return self._frames is None and self._outage.is_on

    def next(self, timeout: float) -> Columns | None:
        deadline = time.monotonic() + timeout
        while not self._closed:
            if self._failure is not None:
                raise self._failure
            columns = self._received(deadline)
            if columns:
                self._outage.end()
                self._next = columns.numbers[-1] + 1
                return columns
            if time.monotonic() >= deadline:
                break
        return None

    def close(self) -> None:
        self._closed = True
        frames, opening = self._frames, self._opening
        self._frames = self._opening = None
        if frames is not None:
            self._source.end(frames)
        if opening is not None:
            opening.abandon()

    def _received(self, deadline: float) -> Columns | None:
        frames = self._frames or self._opened(deadline)
        if frames is None:
            return None
        portion = self.portion
        most = portion.rows or self._settings.rows_per_batch
        try:
            if frames.deliveries.rows < most:
                frames.receive(most, portion.size)
        except Exception as error:
            return self._broken(frames, error)
        columns = frames.take(most, portion.fields)
        if columns:
            self._silence.end(time.monotonic())
        else:
            self._check_silence(frames)
        return columns

    def _check_silence(self, frames: LinkFrames) -> None:
        """Give the link up if it delivers nothing that the hub holds for it.

        Raises:
            StalledError: it has stalled; everything that it has delivered is taken.
        """
        now, transfers = time.monotonic(), frames.deliveries.transfers
        if transfers != self._transfers or not frames.is_awaited:
            self._transfers = transfers
            self._silence.end(now)
            return
        newest = self._silence.newest_withheld(self._next, now)
        if newest is not None:
            raise StalledError(
                f"{self._outage.what}: the fast path delivers nothing from sequence number "
                f"{self._next} on, although the hub holds events up to {newest}"
            )

    def _broken(self, frames: LinkFrames, error: Exception) -> Columns:
        """Return the events received before the error; the next attempt begins after them."""
        self._frames = None
        columns = frames.take(None, self.portion.fields)
        has_delivered = frames.deliveries.deliveries > 0
        if has_delivered:
            self._outage.end()
        ended = frames.link.ended_by(error)
        if isinstance(ended, UnreadableFrameError):
            number = columns.numbers[-1] + 1 if columns else self._next
            ended = UnreadableFrameError(
                f"event {number} of partition {self._partition_id}, or the next one, cannot be "
                f"decoded: {ended}"
            )
        self._failed(ended, at_once=has_delivered)
        return columns

    def _failed(
        self, error: Exception, *, at_once: bool = False, began: float | None = None
    ) -> None:
        """Schedule the next attempt, or give up.

        Args:
            error: reported if this was the last attempt.
            at_once: without delay, because the link has delivered, or the connection had been idle.
            began: when the attempt began, by `time.monotonic`; None: it was not an attempt.
        """
        self._trouble = reason(error)
        pause: float | None = 0.0
        if isinstance(error, FastPathError) or failure_of(error) is Failure.REFUSED:
            pause = None
        elif not at_once:
            pause = self._outage.pause(error, began)
        if pause is None:
            self._failure = error
            return
        log.info("partition %s is opened again after: %s", self._partition_id, error)
        self._not_before = time.monotonic() + pause

    def _opened(self, deadline: float) -> LinkFrames | None:
        """Return the frames of the open link; None while there is no link."""
        now = time.monotonic()
        if self._opening is None and now < self._not_before:
            time.sleep(max(0.0, min(self._not_before, deadline) - now))
            return None
        if self._opening is None:
            self._opening = self._next_opening()
        try:
            until = min(deadline, self._opening.deadline)
            link = self._opening.result(max(0.0, until - now))
            if link is None:
                return None
            credit = Credit(self._next, self._until, self._settings.prefetch)
            self._frames = LinkFrames(link, credit)
            self._transfers = 0
            self._silence.end(time.monotonic())
        except Exception as error:
            self._opening.abandon()
            is_kept = isinstance(self._opening, Reattaching)
            self._failed(error, at_once=is_kept, began=self._opening.began)
        self._opening = None
        return self._frames

    def _next_opening(self) -> AnyOpening:
        level, seconds = self._settings.owner_level, self._outage.seconds_left
        return self._source.opening(self._partition_id, self._next, level, seconds)
