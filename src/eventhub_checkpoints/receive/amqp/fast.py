"""Fast path: events of one partition, decoded from frames on the official client's connection."""

import logging
import time
from collections import deque
from typing import Any

from eventhub_checkpoints._shared.client_errors import reason
from eventhub_checkpoints.amqp.frames import encode_frame
from eventhub_checkpoints.amqp.performatives import RECEIVER, Accepted, Disposition
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder import Columns, Deliveries
from eventhub_checkpoints.receive.amqp.known_client import FastPathError, UnreadableFrameError
from eventhub_checkpoints.receive.amqp.opening import Credit, Opening, Place, Retries
from eventhub_checkpoints.receive.amqp.paths import is_final
from eventhub_checkpoints.receive.amqp.private_parts import READ_SIZE, OfficialLink
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.stream import Stream


class LinkFrames:
    """Reader of the frames of a link that the official client has opened.

    The client reads a frame whenever it waits for one: for the answer to a token renewal or to a
    detach. It gets every frame except the transfers of this link, so frames stay in order and no
    event passes through its decoder.

    Args:
        link: opened, without credit.
        credit: how much credit to grant.
    """

    def __init__(self, link: OfficialLink, credit: Credit) -> None:
        self._link, self._credit = link, credit
        self._deliveries = Deliveries(
            channel=link.channel, handle=link.handle, max_frame_size=link.max_frame_size
        )
        self._others: deque[bytes] = deque()
        self._broken: CodecError | None = None
        self._counted = (0, 0)
        self._take_in(link.take_over(self._read))

    @property
    def rows(self) -> int:
        """Return the number of events received and not taken."""
        return self._deliveries.rows

    @property
    def has_delivered(self) -> bool:
        """Return whether any event was received over this link."""
        return self._deliveries.deliveries > 0

    def receive(self, rows: int, size: int) -> None:
        """Wait once for bytes, then decode what is available, up to `rows` rows or `size` bytes.

        Raises:
            UnreadableFrameError: a frame cannot be read; earlier events can be taken.
            Exception: the error that ended the link or connection.
        """
        deliveries = self._deliveries
        self._step()
        while 0 < deliveries.rows < rows and deliveries.size < size and self._link.has_more:
            self._step()

    def take(self, most: int | None = None) -> Columns:
        """Return the received rows, at most `most`, and remove them."""
        columns = self._deliveries.take(most)
        self._credit.taken(columns)
        return columns

    def ended_by(self, error: Exception) -> Exception:
        """Return the public error for one raised by `receive`; the link is closed."""
        return self._link.ended_by(error)

    def close(self) -> None:
        """Detach and disconnect; never raises."""
        self._link.close()

    def _step(self) -> None:
        self._grant()
        self._link.work()
        if self._broken is not None:
            # Recorded, not raised where it happened: the client swallows some errors there.
            text = f"a frame cannot be read: {self._broken}"
            raise UnreadableFrameError(text) from self._broken

    def _grant(self) -> None:
        granted = self._credit.grant(self._deliveries.rows, urgent=self._link.window_is_low)
        if granted is not None:
            self._link.grant(granted)

    def _read(self, *_: Any, **__: Any) -> tuple[memoryview, int, memoryview]:
        """Return head, channel and body of the client's next frame, in place of its own function.

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
        parts = [self._link.read_some()]
        size = len(parts[0])
        # TLS returns 16 KiB at a time, a WebSocket one message.
        while size < READ_SIZE and self._link.has_more:
            try:
                parts.append(self._link.read_some())
            except OSError:
                break  # the next call meets it again; earlier events must not be lost
            size += len(parts[-1])
        return b"".join(parts)

    def _take_in(self, data: bytes) -> None:
        try:
            self._others += self._deliveries.feed(data)
        except CodecError as error:
            self._broken = error
        self._count()
        if self._deliveries.unsettled:
            self._settle()

    def _count(self) -> None:
        transfers, deliveries = self._deliveries.transfers, self._deliveries.deliveries
        self._link.count(transfers - self._counted[0], deliveries - self._counted[1])
        self._credit.used(deliveries - self._counted[1])
        self._counted = transfers, deliveries

    def _settle(self) -> None:
        """Accept deliveries that the peer sent unsettled; the client would never settle them."""
        ids, self._deliveries.unsettled = self._deliveries.unsettled, []
        frames = (
            Disposition(role=RECEIVER, first=first, last=last, settled=True, state=Accepted())
            for first, last in runs(ids)
        )
        channel = self._link.outgoing_channel
        self._link.send(b"".join(encode_frame(frame, channel) for frame in frames))


def runs(ids: list[int]) -> list[tuple[int, int]]:
    """Return first and last id of each run of consecutive ids."""
    found: list[tuple[int, int]] = []
    for one in ids:
        if found and one == found[-1][1] + 1:
            found[-1] = (found[-1][0], one)
        else:
            found.append((one, one))
    return found


_LOGGER = logging.getLogger(__name__)

BYTES_AT_ONCE = 16 * 2**20
"""Approximate limit, in bytes of bodies, of the events returned at once."""


class FastStream(Stream):
    """Events of one partition, read on demand.

    No thread receives ahead: what the reader does not take waits in the sockets, and memory is
    bounded by one return of `rows_per_batch` rows or `BYTES_AT_ONCE`. Token renewal and heartbeats
    happen in `next`. A reader that pauses for longer than the service waits (minutes) loses its
    connection, and its next call reconnects where it left off, as after any other break.

    Args:
        place: where to read; its client is closed with the stream.
        start: sequence number of the first event.
        until: sequence number of the first event not wanted; nothing after it is requested.
        settings: how a range is read.
        retries: how often a broken link is replaced.

    Raises:
        FastPathError: the client has changed.
    """

    def __init__(
        self, place: Place, start: int, until: int, settings: ReadSettings, retries: Retries
    ) -> None:
        self._place, self._settings, self._retries = place, settings, retries
        self._next, self._until = start, until
        self._closed = False
        self._not_before = 0.0
        self._failure: Exception | None = None
        self._trouble = ""
        self._frames: LinkFrames | None = None
        self._opening: Opening | None = self._begun()

    @property
    def trouble(self) -> str:
        return self._trouble

    def next(self, timeout: float) -> Columns | None:
        deadline = time.monotonic() + timeout
        while not self._closed:
            if self._failure is not None:
                raise self._failure
            columns = self._received(deadline)
            if columns:
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
            frames.close()
        if opening is not None:
            opening.abandon()
        self._place.client.close()

    def _received(self, deadline: float) -> Columns | None:
        frames = self._frames or self._opened(deadline)
        if frames is None:
            return None
        most = self._settings.rows_per_batch
        try:
            if frames.rows < most:
                frames.receive(most, BYTES_AT_ONCE)
        except Exception as error:
            return self._broken(frames, error)
        return frames.take(most)

    def _broken(self, frames: LinkFrames, error: Exception) -> Columns:
        """Return the events received before the error; the next attempt begins after them."""
        self._frames = None
        columns = frames.take()
        if frames.has_delivered:
            self._retries.succeeded()
        ended = frames.ended_by(error)
        if isinstance(ended, UnreadableFrameError):
            number = columns.numbers[-1] + 1 if columns else self._next
            partition = self._place.partition_id
            ended = UnreadableFrameError(
                f"event {number} of partition {partition}, or the next one, cannot be decoded: "
                f"{ended}"
            )
        self._failed(ended, at_once=frames.has_delivered)
        return columns

    def _failed(self, error: Exception, *, at_once: bool = False) -> None:
        """Schedule the next attempt, at once if the link has delivered; or give up."""
        self._trouble = reason(error)
        is_last = isinstance(error, FastPathError) or is_final(error)
        pause = None if is_last else self._retries.pause()
        if pause is None:
            self._failure = error
            return
        _LOGGER.info("partition %s is opened again after: %s", self._place.partition_id, error)
        self._not_before = time.monotonic() + (0.0 if at_once else pause)

    def _opened(self, deadline: float) -> LinkFrames | None:
        """Return the frames of the open link; None while there is no link."""
        now = time.monotonic()
        if self._opening is None and now < self._not_before:
            time.sleep(max(0.0, min(self._not_before, deadline) - now))
            return None
        if self._opening is None:
            self._opening = self._begun()
        try:
            until = min(deadline, self._opening.deadline)
            link = self._opening.result(max(0.0, until - now))
            if link is None:
                return None
            credit = Credit(self._next, self._until, self._settings.prefetch)
            self._frames = LinkFrames(link, credit)
        except Exception as error:
            self._opening.abandon()
            self._failed(error)
        self._opening = None
        return self._frames

    def _begun(self) -> Opening:
        return Opening(self._place, self._next)
