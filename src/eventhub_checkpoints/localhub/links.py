"""Links: credit, deliveries in both directions, and the requests on `$management` and `$cbs`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from eventhub_checkpoints._shared.partition_keys import excessive_length
from eventhub_checkpoints.amqp import performatives as amqp
from eventhub_checkpoints.amqp.messages import Message, decode_message
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub.conditions import (
    RefusedError,
    bad_key,
    invalid,
    too_large,
)
from eventhub_checkpoints.localhub.events import now, read_events
from eventhub_checkpoints.localhub.management import CBS, answer, answer_token

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.performatives import Composite
    from eventhub_checkpoints.localhub.hubs import Hub, PartitionLog
    from eventhub_checkpoints.localhub.session import Session

MAX_MESSAGE_SIZE = 1024 * 1024
CREDIT = 1000


class Link:
    """Local end of a link; the handle is the peer's, used in both directions."""

    def __init__(self, session: Session, attach: amqp.Attach) -> None:
        self.session = session
        self.name = attach.name
        self.handle = attach.handle

    def detach(self, error: amqp.Error | None) -> None:
        """Detach the link and forget it."""
        self.session.drop(self)
        self.session.send(amqp.Detach(handle=self.handle, closed=True, error=error))

    def on_flow(self, flow: amqp.Flow) -> None:
        """Update the peer's credit."""

    def on_transfer(self, transfer: amqp.Transfer, payload: bytes) -> None:
        """Process a frame of a delivery."""

    def on_closed(self) -> None:
        """Release what the link holds."""


class OutLink(Link):
    """Link on which the hub sends; it counts the peer's credit."""

    def __init__(self, session: Session, attach: amqp.Attach) -> None:
        super().__init__(session, attach)
        self.credit = 0
        self.delivery_count = 0

    def on_flow(self, flow: amqp.Flow) -> None:
        """Set the credit and send what it allows."""
        if flow.link_credit is not None:
            # Serial numbers of 32 bits: the sum may wrap around.
            ahead = (self.delivery_count - (flow.delivery_count or 0)) & 0xFFFF_FFFF
            self.credit = max(0, flow.link_credit - ahead)
        self.pump()
        if flow.drain:
            while self.turn():
                pass
            self.delivery_count = (self.delivery_count + self.credit) & 0xFFFF_FFFF
            self.credit = 0
        if flow.drain or flow.echo:
            self.session.send_flow(self.handle, self.delivery_count, self.credit)

    def pump(self) -> None:
        """Send pending data, as far as credit allows."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """Send some pending data; return whether there was any."""
        return False


class ReplyLink(OutLink):
    """Link for the responses of `$management` or `$cbs`."""

    def __init__(self, session: Session, attach: amqp.Attach, node: str, address: object) -> None:
        super().__init__(session, attach)
        self.node, self.address = node, address
        self._waiting: deque[bytes] = deque()

    def reply(self, message: Message) -> None:
        """Send a response as soon as there is credit."""
        self._waiting.append(message.encode())
        self.pump()

    def turn(self) -> bool:
        """Send one pending response; return whether there was any."""
        if not self._waiting or not self.credit:
            return False
        self.credit -= 1
        self.delivery_count += 1
        self.session.send_delivery(self.handle, self._waiting.popleft())
        return True


class InLink(Link):
    """Link on which the hub receives; it assembles deliveries and grants credit."""

    def __init__(self, session: Session, attach: amqp.Attach) -> None:
        super().__init__(session, attach)
        self._delivery_count = attach.initial_delivery_count or 0
        self._credit = 0
        self._first: amqp.Transfer | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def grant(self) -> None:
        """Top the credit up when half of it is used."""
        if self._credit <= CREDIT // 2:
            self._credit = CREDIT
            self.session.send_flow(self.handle, self._delivery_count, CREDIT)

    def on_flow(self, flow: amqp.Flow) -> None:
        """Answer a sender that requests its credit."""
        if flow.echo:
            self.session.send_flow(self.handle, self._delivery_count, self._credit)

    def on_transfer(self, transfer: amqp.Transfer, payload: bytes) -> None:
        """Collect the frames of a delivery and process it when it is complete."""
        if self._first is None:
            self._first = transfer
        self._parts.append(payload)
        self._size += len(payload)
        if self._size > MAX_MESSAGE_SIZE:
            self.detach(too_large(MAX_MESSAGE_SIZE))
        elif transfer.aborted or not transfer.more:
            self._finish(self._first, transfer)

    def _finish(self, first: amqp.Transfer, last: amqp.Transfer) -> None:
        payload = b"".join(self._parts)
        self._first, self._parts, self._size = None, [], 0
        self._delivery_count = (self._delivery_count + 1) & 0xFFFF_FFFF
        self._credit -= 1
        if not last.aborted:
            outcome = self._outcome(payload, first.message_format or 0)
            if not (first.settled or last.settled):
                self.session.send_settled(first.delivery_id or 0, outcome)
        self.grant()

    def _outcome(self, payload: bytes, message_format: int) -> Composite:
        try:
            self.take(payload, message_format)
        except CodecError as error:
            return amqp.Rejected(error=invalid(str(error)))
        except RefusedError as refusal:
            return amqp.Rejected(error=refusal.error)
        return amqp.Accepted()

    def take(self, payload: bytes, message_format: int) -> None:
        """Process a delivery."""


class RequestLink(InLink):
    """Link for the requests to `$management` or `$cbs`."""

    def __init__(self, session: Session, attach: amqp.Attach, node: str) -> None:
        super().__init__(session, attach)
        self._node = node

    def take(self, payload: bytes, message_format: int) -> None:
        """Answer a request on the reply link that it names, or on the latest of its session."""
        request = decode_message(payload)
        address = None if request.properties is None else request.properties.reply_to
        link = self.session.reply_link(self._node, address)
        if self._node == CBS:
            link.reply(answer_token(request, self.session.connection.authorize))
        else:
            link.reply(answer(request, self.session.hubs))


class PublishLink(InLink):
    """Link that stores events in a hub, or in the one partition that the target names."""

    def __init__(
        self, session: Session, attach: amqp.Attach, hub: Hub, log: PartitionLog | None
    ) -> None:
        super().__init__(session, attach)
        self._hub, self._log = hub, log
        hub.publishers.add(self)

    def on_closed(self) -> None:
        """Leave the hub's publishers."""
        self._hub.publishers.discard(self)

    def take(self, payload: bytes, message_format: int) -> None:
        """Store the events of a delivery.

        Raises:
            RefusedError: a fault refuses it, or a partition key is too long; nothing is stored.
        """
        connection = self.session.connection
        if connection.faults.rejections:
            raise RefusedError(connection.faults.rejections.popleft())
        events = read_events(payload, message_format)
        for event in events:
            if event.key is not None and (length := excessive_length(event.key)):
                raise RefusedError(bad_key(length))
        if self._log is None:
            self._hub.append(events)
        else:
            self._log.append(events, now())
        if connection.faults.lost_answers:
            connection.faults.lost_answers -= 1
            connection.abort()
