"""Receivers of the client: a link whose frames this package reads, and errors that are retried."""

import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.sdk.connection import DETACHED, OfficialConnection
from eventhub_checkpoints.sdk.fallback import changed, check_version
from eventhub_checkpoints.sdk.private_names import (
    CLIENT,
    CONSUMER,
    HANDLER,
    RECEIVE,
    Internal,
    checked,
)

READ_SIZE, TLS_RECORD = 256 * 1024, 16 * 1024
SERIAL = 0xFFFF_FFFF
"""AMQP ids and counts have 32 bits and wrap around to 0."""

ReadFrame = Callable[..., tuple[memoryview, int, memoryview]]


def note_errors(client: EventHubConsumerClient, note: Callable[[Exception], None]) -> None:
    """Call a function with each error that a receiver of the client meets and would retry.

    The client reports an error only after all its retries, and begins to count anew with each
    turn of its loop, so a refusal is never reported; that it cannot connect is not reported either.
    Nothing is noted if the names have changed.

    Args:
        client: has no receiver yet.
        note: may raise the error, which ends the receiver.

    Source: azure-eventhub 5.15.1, `_consumer.py`, `receive`.
    """
    if not hasattr(client, "_create_consumer"):
        return
    create: Callable[..., Internal] = client._create_consumer

    def create_noting(*args: Any, **settings: Any) -> Internal:
        consumer = create(*args, **settings)
        if hasattr(consumer, "_handle_exception") and hasattr(consumer, "_open"):
            handle: Callable[..., Exception] = consumer._handle_exception
            open_: Callable[[], bool] = consumer._open

            def noting(error: Exception, **own: Any) -> Exception:
                public = handle(error, **own)
                note(public)
                return public

            def open_noting() -> bool:
                try:
                    return open_()
                except Exception as error:
                    if not consumer.running:  # else the client handles it
                        noting(error, is_consumer=True)
                    raise

            consumer._handle_exception = noting
            consumer._open = open_noting
        return consumer

    client._create_consumer = create_noting  # type: ignore[method-assign]


class OfficialLink(OfficialConnection):
    """Receiver of the client whose frames are read by this package.

    After `detach`, its connection serves the next partition: `move`, then `open`.

    Args:
        client: stays open.
        consumer_group: the group that reads the events.
        partition_id: which partition.
        start: sequence number of the first event.
        owner_level: see `ReadSettings`.

    Attributes:
        channel, handle: identify the link's transfers, once it is open.
        outgoing_channel: for frames sent by this package, once it is open.
    """

    channel: int
    handle: int
    outgoing_channel: int
    max_frame_size: int

    def __init__(
        self,
        client: EventHubConsumerClient,
        consumer_group: str,
        partition_id: str,
        start: int,
        owner_level: int | None = None,
    ) -> None:
        check_version()
        self._client, self._consumer_group = client, consumer_group
        self.owner_level = owner_level
        self._detached: Internal = None
        super().__init__(self._consumer(partition_id, start), is_consumer=True)

    def _consumer(self, partition_id: str, start: int) -> Internal:
        client = checked(RECEIVE, self._client, CLIENT)
        try:
            consumer = client._create_consumer(
                self._consumer_group,
                partition_id,
                start,
                lambda *_: None,
                event_position_inclusive=True,
                owner_level=self.owner_level,
            )
        except TypeError as error:
            raise changed(error) from error
        return checked(RECEIVE, consumer, CONSUMER)

    def detach(self) -> None:
        """Detach and let the client read its frames again; the connection stays open.

        The peer must owe no event, because the client would decode it.
        """
        del self._transport.read
        self._link.detach(close=True)
        self._detached, self._handler._link = self._link, None

    def move(self, partition_id: str, start: int) -> None:
        """Make `open` attach to another partition, over the same connection."""
        consumer = self._consumer(partition_id, start)
        try:
            consumer._create_handler(None)
        except TypeError as error:
            raise changed(error) from error
        self._handler.source = consumer._handler.source
        self._owner.handler_ready = False

    def open(self, is_wanted: Callable[[], bool]) -> bool:
        """Connect and attach, while `is_wanted`; no credit is granted yet.

        Blocks without limit if a server accepts the connection and sends nothing.

        Raises:
            Exception: the error that ended the attempt; see `ended_by`.
        """
        while not (self._owner._open() and self._is_alone()):
            if not is_wanted():
                return False
        self._handler = checked(RECEIVE, self._owner._handler, HANDLER)
        self._session = checked(RECEIVE, self._handler._session, "Session")
        self._link = checked(RECEIVE, self._handler._link, "Link", "ReceiverLink")
        self._connection = checked(RECEIVE, self._handler._connection, "Connection")
        self._transport = checked(RECEIVE, self._connection._transport, "Transport")
        endpoints: Mapping[int, object] = self._connection._incoming_endpoints
        self.channel = next(at for at in endpoints if endpoints[at] is self._session)
        self.outgoing_channel, self.handle = self._session.channel, self._link.remote_handle
        self.max_frame_size = self._connection._max_frame_size
        self._seen = self._session.next_incoming_id
        if not self._selector.get_map():
            self._selector.register(self._transport.sock, selectors.EVENT_READ)
        return True

    def _is_alone(self) -> bool:
        """Return whether the peer has forgotten the previous link; read a frame if it has not.

        The peer may use the handle of that link for the next one.
        """
        link = self._detached
        if link is None:
            return True
        try:
            is_detached = link.get_state().value == DETACHED
        except Exception:  # what ended the link before it was detached
            is_detached = True
        if not is_detached:
            self.work()
            return False
        session = self._session
        for links in (session.links, session._input_handles, session._output_handles):
            for key in [key for key in links if links[key] is link]:
                del links[key]
        self._detached = None
        return True

    def take_over(self, read: ReadFrame) -> bytes:
        """Replace the function by which the client reads frames; return bytes read already."""
        self._transport.read = read
        return bytes(self._transport._read_buffer.read())

    def read_some(self) -> bytes:
        """Read some of the available bytes.

        Raises:
            TimeoutError: nothing arrived within the client's socket time-out.
        """
        sock = self._transport.sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        if not hasattr(sock, "recv_into"):
            # A WebSocket: the client returns one byte of a message and keeps the rest.
            first = bytes(self._transport._read(1, initial=True))
            return first + bytes(self._transport._read_buffer.read())
        data = bytes(sock.recv(TLS_RECORD if hasattr(sock, "pending") else READ_SIZE))
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data

    def count(self, transfers: int, deliveries: int) -> None:
        """Update the counters of session and link for frames that did not pass through them."""
        session = self._session
        self._connection._last_frame_received_time = time.time()
        # A flow frame of the peer among these transfers was older than the last of them.
        behind = (self._seen - session.next_incoming_id) & SERIAL
        seen = self._seen if behind < SERIAL // 2 else session.next_incoming_id
        self._seen = session.next_incoming_id = (seen + transfers) & SERIAL
        session.incoming_window -= transfers
        self._link.delivery_count = (self._link.delivery_count + deliveries) & SERIAL

    @property
    def window_is_low(self) -> bool:
        """Return whether the peer will soon have to wait for the session's window."""
        return bool(self._session.incoming_window <= self._session.target_incoming_window // 2)

    def grant(self, credit: int) -> None:
        """Grant credit for this many deliveries, counted from now."""
        self._session.incoming_window = self._session.target_incoming_window
        self._link.flow(link_credit=credit)
