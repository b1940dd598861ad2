"""One partition's events over the official client's connection, its frames read by ourselves."""

import logging
import time

from eventhub_checkpoints._shared.client_errors import reason
from eventhub_checkpoints.receive.amqp.credit import Credit
from eventhub_checkpoints.receive.amqp.decoder import Columns
from eventhub_checkpoints.receive.amqp.frames import LinkFrames
from eventhub_checkpoints.receive.amqp.known_client import FastPathError, UnreadableFrameError
from eventhub_checkpoints.receive.amqp.opening import Opening, Place
from eventhub_checkpoints.receive.amqp.refusals import is_final
from eventhub_checkpoints.receive.amqp.retries import Retries
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.stream import Stream

_LOGGER = logging.getLogger(__name__)

BYTES_AT_ONCE = 16 * 2**20
"""What is given out at once has hardly more bytes of bodies than this."""


class FastStream(Stream):
    """The events of one partition, read when they are asked for.

    No thread receives ahead: what the reader does not take waits in the sockets, and memory is
    bounded by one helping of `rows_per_batch` rows or `BYTES_AT_ONCE`. Token renewal and heartbeats
    happen in `next`. A reader that stays away longer than the service waits (minutes) has lost its
    connection, and its next call opens another one where it left off, as after any other break.

    Args:
        place: where to read; its client is closed with the stream.
        start: sequence number of the first event.
        until: of the first event that is not wanted; nothing behind it is asked for.
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
        """What came before the error; the next attempt begins behind it."""
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
        """Give up, or say when to try again; a link that has delivered is replaced at once."""
        self._trouble = reason(error)
        is_last = isinstance(error, FastPathError) or is_final(error)
        pause = None if is_last else self._retries.pause()
        if pause is None:
            self._failure = error
            return
        _LOGGER.info("partition %s is opened again after: %s", self._place.partition_id, error)
        self._not_before = time.monotonic() + (0.0 if at_once else pause)

    def _opened(self, deadline: float) -> LinkFrames | None:
        """The frames of a link that is open; None while there is none."""
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
