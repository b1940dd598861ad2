"""Fast path: encoded batches over the official client's connection, several unanswered at once."""

import logging
import time
from dataclasses import dataclass, field

from azure.eventhub import EventHubProducerClient
from azure.eventhub.exceptions import EventHubError, OperationTimeoutError

from eventhub_checkpoints._shared.client import Failure, failure_of, reason
from eventhub_checkpoints.amqp.performatives import (
    Accepted,
    Composite,
    Disposition,
    frames_needed,
)
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.fast import Opening
from eventhub_checkpoints.receive.amqp.outage import Outage
from eventhub_checkpoints.sdk.fallback import FastPathError, StalledError, UnreadableFrameError
from eventhub_checkpoints.sdk.sender import OfficialSender
from eventhub_checkpoints.sdk.stall import STALLED
from eventhub_checkpoints.send.amqp.outlet import Outlet
from eventhub_checkpoints.send.amqp.transfers import (
    encode_transfers,
    read_answer,
    read_refusal,
)
from eventhub_checkpoints.send.filling import Batch
from eventhub_checkpoints.send.settings import SendSettings

log = logging.getLogger(__name__)

SERVER_BUSY = "server-busy"
PAUSE_WHEN_BUSY = 4.0
"""Seconds for which a client has to send nothing when the service throttles it.

Source: azure-eventhub 5.15.1, `_constants.py`, `CUSTOM_CONDITION_BACKOFF`.
"""
ANSWER_POLL = 0.2
"""Seconds for which a turn waits at most for a connection."""


@dataclass(slots=True, eq=False)
class Flight:
    """Batch on its way.

    Attributes:
        batch: its events.
        deadline: when it has to be confirmed, by `time.monotonic`.
        delivery_id: of the present attempt; None while it is not sent.
        answer: the hub's answer to the present attempt, if there is one.
        blocked_since: since when the link allows no attempt, by `time.monotonic`; None: it does.
        trouble: why the last attempt failed.
        in_doubt: whether an attempt ended without an answer, so the hub may have stored the batch.
    """

    batch: Batch
    deadline: float
    payload: bytes = field(repr=False)
    delivery_id: int | None = None
    answer: Disposition | None = None
    blocked_since: float | None = None
    trouble: str = ""
    in_doubt: bool = False

    @property
    def is_unanswered(self) -> bool:
        """Return whether it is sent, and has no answer."""
        return self.delivery_id is not None and self.answer is None


class FastOutlet(Outlet):
    """Sends encoded batches over one connection, from the caller's thread.

    At most `most_in_flight` batches have no answer, and of a partition at most one: a batch that
    must be sent again can overtake no later one of its partition. Batches without a partition have
    no order, and several are on their way at once. Frames are read and the token is renewed while
    the outlet is used; where it was not for minutes, the next call reconnects.

    Args:
        client: closed with the outlet.
        settings: how to send.
        outage: for how long a broken connection is replaced without an answer in between.

    Raises:
        FastPathError: the client has changed.
    """

    def __init__(
        self, client: EventHubProducerClient, settings: SendSettings, outage: Outage
    ) -> None:
        self.accepted = 0
        self._client, self._settings, self._outage = client, settings, outage
        self._flights: list[Flight] = []
        self._busy_until = 0.0
        self._has_accepted = False
        self._unreadable: CodecError | None = None
        self._link: OfficialSender | None = None
        self._opening: Opening[OfficialSender] | None = self._next_opening()

    @property
    def limit(self) -> int:
        deadline = time.monotonic() + self._settings.operation_timeout
        while True:
            if (link := self._opened(deadline)) is not None:
                return link.limit
            if time.monotonic() >= deadline:
                raise OperationTimeoutError("the hub could not be reached in time")

    def put(self, batch: Batch) -> None:
        partition = batch.partition_id
        while len(self._flights) >= self._settings.most_in_flight or (
            partition is not None and any(f.batch.partition_id == partition for f in self._flights)
        ):
            self._turn(wait=True)
        deadline = time.monotonic() + self._settings.operation_timeout
        self._flights.append(Flight(batch, deadline, b"".join(batch.sections)))
        self._turn(wait=False)

    def flush(self) -> None:
        while self._flights:
            self._turn(wait=True)

    def give_up(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (
            self._link is not None
            and any(flight.is_unanswered for flight in self._flights)
            and time.monotonic() < deadline
        ):
            try:
                self._link.work()
                self._link.check()
            except Exception:
                break
            finally:
                self._refusals()
        doubtful = [each for each in self._flights if each.is_unanswered or each.in_doubt]
        return sum(len(each.batch) for each in doubtful)

    def close(self) -> None:
        link, opening = self._link, self._opening
        self._link = self._opening = None
        if link is not None:
            link.close()
        if opening is not None:
            opening.abandon()
        self._client.close()

    @property
    def is_usable(self) -> bool:
        if self._link is None:
            return False
        try:
            while self._link.has_more:
                self._link.work()
            self._link.check()
        except Exception:
            # What ended an idle connection says nothing about the hub as it is now.
            return False
        return True

    def unconfirmed(self) -> list[Batch]:
        return [flight.batch for flight in self._flights]

    def _turn(self, *, wait: bool) -> None:
        """Send what may be sent and handle answers; with `wait`, wait for one for a while."""
        now = time.monotonic()
        for flight in self._flights:
            if now >= flight.deadline:
                seconds = self._settings.operation_timeout
                raise OperationTimeoutError(
                    f"a batch of {len(flight.batch):,} events was not confirmed within "
                    f"{seconds:g} s: {flight.trouble or 'no answer'}"
                )
        soonest = min((flight.deadline for flight in self._flights), default=now)
        link = self._opened(min(soonest, now + ANSWER_POLL) if wait else now)
        if link is None:
            return
        try:
            self._send_waiting(link)
            if wait and any(flight.is_unanswered for flight in self._flights):
                link.work()  # returns after the client's socket time-out at the latest
            elif wait and any(flight.blocked_since is not None for flight in self._flights):
                link.work()  # likewise; credit may arrive
            elif wait:
                time.sleep(max(0.0, min(self._busy_until - time.monotonic(), ANSWER_POLL)))
            while link.has_more:
                link.work()
            link.check()
            if self._unreadable is not None:
                text = f"an answer of the hub cannot be read: {self._unreadable}"
                raise UnreadableFrameError(text) from self._unreadable
        except Exception as error:
            self._take_answers()
            self._broken(link, error)
        else:
            self._take_answers()
            self._check_stall(link)

    def _send_waiting(self, link: OfficialSender) -> None:
        if self._stalled_since() is not None:
            return  # until what was sent is answered
        for flight in self._flights:
            if flight.delivery_id is not None:
                continue
            if time.monotonic() < self._busy_until:
                return
            partition = flight.batch.partition_id
            if partition is not None:
                link.attach(partition, flight.deadline)
            self._note_credit(flight, link)
            if flight.blocked_since is not None:
                continue
            delivery = link.next_delivery(partition)
            frames = encode_transfers(flight.payload, delivery, link.max_frame_size)
            link.send_delivery(partition, frames, self._settings.operation_timeout)
            flight.delivery_id = delivery.delivery_id

    def _note_credit(self, flight: Flight, link: OfficialSender) -> None:
        """Note since when the link allows no attempt for a batch, or that it does."""
        needed = frames_needed(len(flight.payload), link.max_frame_size)
        if link.can_send(flight.batch.partition_id, needed):
            flight.blocked_since = None
        elif flight.blocked_since is None:
            flight.blocked_since = time.monotonic()

    def _stalled_since(self) -> float | None:
        """Return since when a batch could not be sent, if that is too long; else None."""
        blocked = [each.blocked_since for each in self._flights if each.blocked_since is not None]
        if not blocked:
            return None
        since = max(min(blocked), self._busy_until)
        return since if time.monotonic() >= since + STALLED else None

    def _check_stall(self, link: OfficialSender) -> None:
        """Give a link up that allows no batch, once everything that was sent is answered.

        What is not answered may be in the hub, and would be there twice.

        Raises:
            StalledError: there is such a link.
        """
        for flight in self._flights:
            if flight.blocked_since is not None:
                # What was read in this turn may have granted credit, after a pause of the caller.
                self._note_credit(flight, link)
        since = self._stalled_since()
        if since is None or any(flight.is_unanswered for flight in self._flights):
            return
        raise StalledError(
            f"{self._outage.what}: the fast path has had no credit for a batch for "
            f"{time.monotonic() - since:.0f} s"
        )

    def _on_frame(self, body: memoryview) -> None:
        """Record an answer of the hub; called while the link reads."""
        try:
            answer = read_answer(body)
        except CodecError as error:
            self._unreadable = error
            return
        if answer is None:
            return
        last = answer.first if answer.last is None else answer.last
        for flight in self._flights:
            if flight.delivery_id is not None and answer.first <= flight.delivery_id <= last:
                flight.answer = answer

    def _take_answers(self) -> None:
        """Remove what is accepted; what is not will be sent again, or raises.

        Raises:
            EventHubError: a batch is refused for good.
        """
        for flight, outcome in self._refusals():
            condition, flight.trouble = read_refusal(outcome)
            error = EventHubError(flight.trouble)
            error.error = condition
            if failure_of(error) is Failure.REFUSED:
                raise error
            pause = PAUSE_WHEN_BUSY if condition.endswith(SERVER_BUSY) else 0.0
            if not pause:
                pause = self._pause(error)
            self._busy_until = max(self._busy_until, time.monotonic() + pause)

    def _refusals(self) -> list[tuple[Flight, Composite | None]]:
        """Remove the batches that are accepted; return those that are not, with the outcome."""
        refused = []
        for flight in list(self._flights):
            if flight.answer is None:
                continue
            outcome = flight.answer.state
            flight.delivery_id = flight.answer = None
            if isinstance(outcome, Accepted):
                self._flights.remove(flight)
                self.accepted += len(flight.batch)
                self._outage.end()
                self._has_accepted = True
                continue
            refused.append((flight, outcome))
        return refused

    def _pause(self, error: Exception, began: float | None = None) -> float:
        """Return how long to wait before the next attempt; raises the error if it was the last."""
        pause = self._outage.pause(error, began)
        if pause is None:
            raise error
        return pause

    def _broken(self, link: OfficialSender, error: Exception) -> None:
        """Forget the connection; everything without an answer is sent again over the next one."""
        self._link = None
        for flight in self._flights:
            flight.in_doubt = flight.in_doubt or flight.is_unanswered
            flight.delivery_id = flight.answer = flight.blocked_since = None
        at_once, self._has_accepted = self._has_accepted, False
        self._failed(link.ended_by(error), at_once=at_once)

    def _failed(
        self, error: Exception, *, at_once: bool = False, began: float | None = None
    ) -> None:
        """Schedule the next attempt, or raise; arguments as in `FastStream`."""
        if isinstance(error, FastPathError) or failure_of(error) is Failure.REFUSED:
            raise error
        for flight in self._flights:
            flight.trouble = reason(error)
        is_busy = str(getattr(error, "error", None)).endswith(SERVER_BUSY)
        pause = 0.0
        if is_busy:
            pause = PAUSE_WHEN_BUSY
        elif not at_once:
            pause = self._pause(error, began)
        log.info("the hub is connected again after: %s", error)
        self._busy_until = time.monotonic() + pause

    def _opened(self, until: float) -> OfficialSender | None:
        """Return the open connection; None if there is none at `until`, by `time.monotonic`."""
        if self._link is not None:
            return self._link
        now = time.monotonic()
        if self._opening is None and now < self._busy_until:
            time.sleep(max(0.0, min(self._busy_until, until) - now))
            return None
        try:
            if self._opening is None:
                self._opening = self._next_opening()
            self._link = self._opening.result(max(0.0, min(until, self._opening.deadline) - now))
            if self._link is None:
                return None
        except Exception as error:
            began = None
            if self._opening is not None:
                self._opening.abandon()
                began = self._opening.began
            self._opening = None
            self._failed(error, began=began)
        self._opening = None
        return self._link

    def _next_opening(self) -> Opening[OfficialSender]:
        seconds = min(self._outage.seconds_left, self._settings.operation_timeout)
        return Opening(OfficialSender(self._client, self._on_frame), "sender", seconds)
