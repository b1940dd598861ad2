"""Sender of the client, on whose connection this package sends frames of its own."""

import selectors
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from azure.eventhub import EventHubProducerClient
from azure.eventhub.exceptions import ConnectError

from eventhub_checkpoints.sdk.connection import ATTACHED, OfficialConnection
from eventhub_checkpoints.sdk.fallback import changed, check_version
from eventhub_checkpoints.sdk.private_names import HANDLER, PRODUCER, SEND, Internal, checked


class NextDelivery(NamedTuple):
    """What identifies the next delivery of a link, in its frames.

    Attributes:
        channel: of the session.
        handle: of the link.
        delivery_id: unique in the session.
        tag: unique on the link.
    """

    channel: int
    handle: int
    delivery_id: int
    tag: bytes


class OfficialSender(OfficialConnection):
    """Connection of the client's producer, on which this package sends encoded batches.

    The client attaches a link to the hub. The links of partitions are attached to the same
    session: one connection serves all of them, where the client opens one for each.

    Args:
        client: stays open.
        on_frame: called with the body of each frame of the peer, before the client handles it. The
            client may swallow its errors.

    Attributes:
        limit: largest message that the hub accepts, in bytes, once it is open.
    """

    limit: int

    def __init__(
        self, client: EventHubProducerClient, on_frame: Callable[[memoryview], None]
    ) -> None:
        check_version()
        try:
            producer = checked(SEND, client, "EventHubProducerClient")._create_producer()
        except TypeError as error:
            raise changed(error) from error
        super().__init__(checked(SEND, producer, PRODUCER), is_consumer=False)
        self._on_frame = on_frame
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
        self._handler = checked(SEND, self._owner._handler, HANDLER)
        self._session = checked(SEND, self._handler._session, "Session")
        self._connection = checked(SEND, self._handler._connection, "Connection")
        self._transport = checked(SEND, self._connection._transport, "Transport")
        link = checked(SEND, self._handler._link, "Link", "SenderLink")
        self._links[None] = link
        self.limit = link.remote_max_message_size or self._connection._remote_max_frame_size
        self._watch_frames()
        self._selector.register(self._transport.sock, selectors.EVENT_READ)
        return True

    def _watch_frames(self) -> None:
        read = self._transport.read

        def watched(*args: Any, **settings: Any) -> Any:
            head, channel, body = read(*args, **settings)
            if body:
                self._on_frame(memoryview(body))
            return head, channel, body

        self._transport.read = watched

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

    @property
    def max_frame_size(self) -> int:
        """Return the largest frame that the peer accepts, in bytes."""
        return int(self._connection._remote_max_frame_size)

    def can_send(self, partition_id: str | None, frames: int) -> bool:
        """Return whether the peer's credit and window allow a delivery of so many frames.

        Args:
            partition_id: whose link is attached; None for the hub's.
            frames: number of transfers.
        """
        window = self._session.remote_incoming_window - self._uncounted
        return bool(self._links[partition_id].current_link_credit > 0 and window >= frames)

    def next_delivery(self, partition_id: str | None) -> NextDelivery:
        """Return what identifies the next delivery to a partition."""
        link, session = self._links[partition_id], self._session
        tag = (link.delivery_count + 1 & 0xFFFF_FFFF).to_bytes(4, "big")
        return NextDelivery(session.channel, link.handle, session.next_outgoing_id, tag)

    def send_delivery(
        self, partition_id: str | None, frames: Sequence[bytes], timeout: float
    ) -> None:
        """Send the next delivery to a partition, and count it.

        Args:
            partition_id: see `can_send`.
            frames: its encoded transfers.
            timeout: seconds for which the peer may accept no bytes.
        """
        link, session = self._links[partition_id], self._session
        self.send_within(timeout, *frames)
        link.delivery_count += 1
        link.current_link_credit -= 1
        session.next_outgoing_id += 1
        session.remote_incoming_window -= 1
        self._uncounted += len(frames) - 1
        self._connection._last_frame_sent_time = time.time()
