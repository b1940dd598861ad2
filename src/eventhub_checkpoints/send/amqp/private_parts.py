"""All uses of private parts of the official client for sending.

`PRIVATE_NAMES` lists what the fast path uses and why. Where a name is missing, events are sent
through the client's public API.

Source: azure-eventhub 5.12.0 and 5.15.1, `_producer_client.py`, `_producer.py`,
`_pyamqp/client.py`, `_connection.py`, `session.py`, `link.py`, `sender.py`.
"""

import selectors
import time
from collections.abc import Callable
from typing import Any

from azure.eventhub import EventHubProducerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.amqp.performatives import Transfer, encode_frame
from eventhub_checkpoints.receive.amqp.private_parts import (
    Internal,
    OfficialConnection,
    PrivateName,
    changed,
    check_version,
    checked,
)

PRIVATE_NAMES = tuple(
    PrivateName(*row)
    for row in (
        ("client", "_create_producer", "makes a sender that no other thread uses"),
        ("producer", "_keep_alive", "0: no other thread reads frames"),
        ("producer", "_open", "connects, sends the token, attaches the link"),
        ("producer", "_handler", "the way to the connection, the session and the link"),
        ("producer", "_target", "the address of the hub; that of a partition begins with it"),
        ("producer", "_handle_exception", "makes the public error of an internal one"),
        ("handler", "client_ready", "renews the token in time, raises what ended the link"),
        ("handler", "_connection", "the way to the transport; it reads frames and heartbeats"),
        ("handler", "_session", "its window, and the links of partitions"),
        ("handler", "_link", "the link of the hub"),
        ("handler", "_link_credit", "links of partitions are attached like that of the hub"),
        ("handler", "_send_settle_mode", "likewise"),
        ("handler", "_receive_settle_mode", "likewise"),
        ("handler", "_max_message_size", "likewise"),
        ("handler", "_link_properties", "likewise"),
        ("connection", "listen", "sends heartbeats, handles a frame, raises what ended it"),
        ("connection", "_transport", "the way of the bytes"),
        ("connection", "_remote_max_frame_size", "no frame may be larger"),
        ("connection", "_last_frame_sent_time", "a batch is a sign of life, for the peer"),
        ("session", "channel", "transfers are sent on it"),
        ("session", "next_outgoing_id", "the id of the next delivery"),
        ("session", "remote_incoming_window", "number of transfers that may be sent"),
        ("session", "create_sender_link", "makes the link of a partition"),
        ("link", "attach", "attaches the link of a partition"),
        ("link", "get_state", "whether it is attached; raises what ended it"),
        ("link", "handle", "identifies transfers of the link"),
        ("link", "delivery_count", "counts deliveries, as does the peer"),
        ("link", "current_link_credit", "number of deliveries that may be sent"),
        ("link", "remote_max_message_size", "the limit of the hub"),
        ("link", "_pending_deliveries", "what is notified of the peer's answers"),
        ("transport", "write", "sends transfers"),
        ("transport", "sock", "waited for, and its time-out while sending"),
        ("transport", "close", "the client forgets the socket of a broken connection"),
    )
)

ATTACHED = 3
FRAME_OVERHEAD = 64
"""Bytes of a frame before its part of a payload: the frame's head and a transfer, at most."""
BATCH_FORMAT = 0x8001_3700


class PendingDelivery:
    """Delivery as the client's link expects it in its list of those without an answer.

    Attributes:
        answer: the peer's outcome as the client reads it; an empty one if the link ended.
        is_settled: whether there is an answer.

    Source: azure-eventhub 5.15.1, `_pyamqp/sender.py`, `PendingDelivery`.
    """

    sent = True
    timeout = None
    settled = False

    def __init__(self, delivery_id: int) -> None:
        self.frame = {"delivery_id": delivery_id}
        self.start = time.time()
        self.answer: dict[str, Any] | None = None
        self.is_settled = False

    def on_settled(self, reason: object, state: dict[str, Any] | None) -> None:
        """Record the answer; called by the client's link."""
        del reason
        self.is_settled, self.answer = True, state or {}


class OfficialSender(OfficialConnection):
    """Connection of the client's producer, on which this package sends encoded batches.

    The client attaches a link to the hub. The links of partitions are attached to the same
    session: one connection serves all of them, where the client opens one for each.

    Args:
        client: stays open.

    Attributes:
        limit: largest message that the hub accepts, in bytes, once it is open.

    Raises:
        FastPathError: the client has changed.
    """

    limit: int

    def __init__(self, client: EventHubProducerClient) -> None:
        check_version()
        try:
            producer = checked("client", client, PRIVATE_NAMES)._create_producer()
        except TypeError as error:
            raise changed(error) from error
        super().__init__(checked("producer", producer, PRIVATE_NAMES), is_consumer=False)
        self._links: dict[str | None, Internal] = {}
        # Transfers beyond one for each delivery, which the client's window does not count.
        self._uncounted = 0

    def open(self, is_wanted: Callable[[], bool]) -> bool:
        """Connect and attach; `interrupt` ends it.

        Blocks without limit if a server accepts the connection and sends nothing.
        """
        if not is_wanted():
            return False
        self._owner._open()
        self._handler = checked("handler", self._owner._handler, PRIVATE_NAMES)
        self._session = checked("session", self._handler._session, PRIVATE_NAMES)
        self._connection = checked("connection", self._handler._connection, PRIVATE_NAMES)
        self._transport = checked("transport", self._connection._transport, PRIVATE_NAMES)
        link = checked("link", self._handler._link, PRIVATE_NAMES)
        self._links[None] = link
        self.limit = link.remote_max_message_size or self._connection._remote_max_frame_size
        self._selector.register(self._transport.sock, selectors.EVENT_READ)
        return True

    def attach(self, partition_id: str, deadline: float) -> None:
        """Attach a link to a partition, unless there is one.

        Raises:
            ConnectError: it is not attached at `deadline`, by `time.monotonic`.
            Exception: the error that ended the link or connection; see `ended_by`.
        """
        if partition_id in self._links:
            return
        handler = self._handler
        link = self._session.create_sender_link(
            target_address=f"{self._owner._target}/Partitions/{partition_id}",
            link_credit=handler._link_credit,
            send_settle_mode=handler._send_settle_mode,
            rcv_settle_mode=handler._receive_settle_mode,
            max_message_size=handler._max_message_size,
            properties=handler._link_properties,
        )
        link.attach()
        while link.get_state().value != ATTACHED:
            if time.monotonic() >= deadline:
                raise ConnectError(f"no link to partition {partition_id} was attached in time")
            self.work()
        self._links[partition_id] = link

    def check(self) -> None:
        """Raise the error that ended a link, if one did."""
        for partition_id, link in self._links.items():
            if link.get_state().value != ATTACHED:
                where = "the hub" if partition_id is None else f"partition {partition_id}"
                raise ConnectError(f"the link to {where} was detached")

    def can_send(self, partition_id: str | None, size: int) -> bool:
        """Return whether the peer's credit and window allow a delivery of this size."""
        frames = -(-size // self._room)
        window = self._session.remote_incoming_window - self._uncounted
        return bool(self._links[partition_id].current_link_credit > 0 and window >= frames)

    @property
    def _room(self) -> int:
        return int(self._connection._remote_max_frame_size) - FRAME_OVERHEAD

    def transfer(self, partition_id: str | None, payload: bytes, timeout: float) -> PendingDelivery:
        """Send a batch; its answer arrives in the returned object.

        Args:
            partition_id: whose link is attached; None for the hub's.
            payload: its encoded events.
            timeout: seconds for which the peer may accept no bytes.

        Raises:
            OSError: the connection is broken.
        """
        link, session = self._links[partition_id], self._session
        number, room = session.next_outgoing_id, self._room
        sock = self._transport.sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        view = memoryview(payload)
        # The client's time-out is meant for reading: a fifth of a second for a frame.
        before = sock.gettimeout()
        sock.settimeout(timeout)
        try:
            for begin in range(0, len(payload), room):
                frame = Transfer(
                    handle=link.handle,
                    delivery_id=number,
                    delivery_tag=(link.delivery_count + 1 & 0xFFFF_FFFF).to_bytes(4, "big"),
                    message_format=BATCH_FORMAT,
                    settled=False,
                    more=begin + room < len(payload),
                )
                part = bytes(view[begin : begin + room])
                self.send(encode_frame(frame, session.channel, part))
        finally:
            sock.settimeout(before)
        pending = PendingDelivery(number)
        link._pending_deliveries.append(pending)
        link.delivery_count += 1
        link.current_link_credit -= 1
        session.next_outgoing_id += 1
        session.remote_incoming_window -= 1
        self._uncounted += -(-len(payload) // room) - 1
        self._connection._last_frame_sent_time = time.time()
        return pending
