"""All uses of private parts of the official client.

`PRIVATE_NAMES` lists what the fast path uses and why. The names are looked up on the actual objects
before the first event is requested; where one is missing, the stream uses the public path.

Source: azure-eventhub 5.12.0 and 5.15.1, `_consumer.py`, `_pyamqp/client.py`, `_connection.py`,
`session.py`, `link.py`, `receiver.py`, `_transport.py`.
"""

import logging
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import azure.eventhub
from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.errors import ConfigurationError

VERSION = azure.eventhub.__version__
OLDEST, NEXT_MAJOR = (5, 12), (6, 0)

_WARNED: set[str] = set()


class FastPathError(ConfigurationError):
    """The fast path cannot be used, or cannot continue; the message gives the reason."""


class UnreadableFrameError(FastPathError):
    """A frame of the hub cannot be decoded."""


def check_version(version: str = VERSION) -> None:
    """Check that the client's major version is a supported one.

    Raises:
        FastPathError: it is not.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if not numbers or not OLDEST <= (int(numbers[1]), int(numbers[2])) < NEXT_MAJOR:
        raise FastPathError(f"azure-eventhub {version} is not known; 5.12 to 5.x are")


def changed(error: Exception) -> FastPathError:
    """Return the error for a private part of the client that exists but has changed."""
    return FastPathError(f"azure-eventhub {VERSION} has changed: {error}")


def warn_once(logger: logging.Logger, error: FastPathError, consequence: str) -> None:
    """Log why the public API is used and what follows, each reason once per process.

    Args:
        logger: of the module that falls back.
        error: the reason.
        consequence: the rest of the sentence.
    """
    sentence = f"{error}; {consequence}"
    if sentence not in _WARNED:
        _WARNED.add(sentence)
        logger.warning("%s", sentence)


READ_SIZE, TLS_RECORD = 256 * 1024, 16 * 1024
SERIAL = 0xFFFF_FFFF
"""AMQP ids and counts have 32 bits and wrap around to 0."""

Internal = Any
"""An object of the client whose type is private, like its names."""

ReadFrame = Callable[..., tuple[memoryview, int, memoryview]]


class PrivateName(NamedTuple):
    """Private name of the client: its owner and its purpose."""

    owner: str
    name: str
    reason: str


PRIVATE_NAMES = tuple(
    PrivateName(*row)
    for row in (
        ("client", "_create_consumer", "makes a receiver without a thread of the client"),
        ("consumer", "_keep_alive", "0: no other thread reads frames"),
        ("consumer", "_open", "connects, sends the token, attaches the link, one step per call"),
        ("consumer", "handler_ready", "False: `_open` attaches the next link"),
        ("consumer", "_create_handler", "makes the source of the next link"),
        ("consumer", "_handler", "the way to the connection, the session and the link"),
        ("consumer", "_handle_exception", "makes the public error of an internal one"),
        ("handler", "client_ready", "renews the token in time, raises what ended the link"),
        ("handler", "_connection", "the way to the transport; it reads frames and heartbeats"),
        ("handler", "_session", "its windows"),
        ("handler", "_link", "its handle and its credit; None: the next one is attached"),
        ("handler", "source", "what the next link reads"),
        ("connection", "listen", "sends heartbeats, handles a frame, raises what ended it"),
        ("connection", "_transport", "source of the bytes"),
        ("connection", "_incoming_endpoints", "the channel of the session's frames"),
        ("connection", "_max_frame_size", "no frame may be larger"),
        ("connection", "_last_frame_received_time", "events are a sign of life, for idle_timeout"),
        ("session", "channel", "dispositions are sent on it"),
        ("session", "next_incoming_id", "counts transfers, for the window in a flow frame"),
        ("session", "incoming_window", "number of transfers that may still come"),
        ("session", "target_incoming_window", "the window when it is opened again"),
        ("session", "links", "a detached link is removed, which the client leaves there"),
        ("session", "_input_handles", "likewise; a peer has few handles"),
        ("session", "_output_handles", "likewise"),
        ("link", "remote_handle", "identifies transfers of the link"),
        ("link", "detach", "ends the link, and not its connection"),
        ("link", "get_state", "whether the peer has confirmed that"),
        ("link", "delivery_count", "counts deliveries, for the credit in a flow frame"),
        ("link", "flow", "grants credit"),
        ("transport", "read", "replaced: returns all frames except the link's transfers"),
        ("transport", "sock", "read from in large pieces"),
        ("transport", "_read", "the same over WebSockets, with their errors"),
        ("transport", "_read_buffer", "bytes that the client has read and not used"),
        ("transport", "write", "sends dispositions"),
        ("transport", "close", "the client forgets the socket of a broken connection"),
    )
)


def checked(
    owner: str, part: Internal, private_names: Iterable[PrivateName] = PRIVATE_NAMES
) -> Internal:
    """Return the same object after checking that it has all the names used of it.

    Raises:
        FastPathError: names are missing; the message lists all of them.
    """
    names = [private.name for private in private_names if private.owner == owner]
    if missing := [f"{type(part).__name__}.{name}" for name in names if not hasattr(part, name)]:
        raise FastPathError(f"azure-eventhub {VERSION} has no {', '.join(missing)}")
    return part


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


class OfficialConnection:
    """Connection of a receiver or a sender of the client, whose frames this package handles.

    Args:
        owner: the client's object that opens and closes it, a consumer or a producer.
        is_consumer: which of the two.
    """

    _transport: Internal
    _connection: Internal
    _handler: Internal

    def __init__(self, owner: Internal, *, is_consumer: bool) -> None:
        self._owner, self._is_consumer = owner, is_consumer
        self._owner._keep_alive = 0
        self._selector = getattr(selectors, "PollSelector", selectors.SelectSelector)()

    def open(self, is_wanted: Callable[[], bool]) -> bool:
        """Connect and attach, while `is_wanted`; return whether it is open.

        Raises:
            FastPathError: the client has changed.
            Exception: the error that ended the attempt; see `ended_by`.
        """
        raise NotImplementedError

    def work(self) -> None:
        """Renew the token and send a heartbeat if due, then handle at most one frame.

        Raises:
            Exception: the error that ended the link or connection; see `ended_by`.
        """
        if self._handler.client_ready():
            self._connection.listen(wait=False)

    @property
    def has_more(self) -> bool:
        """Return whether something can be read at once."""
        sock = self._transport.sock
        pending = getattr(getattr(sock, "sock", sock), "pending", None)
        return bool(pending and pending()) or bool(self._selector.select(0))

    def send(self, frame: bytes) -> None:
        """Send an encoded frame."""
        self._transport.write(frame)

    def ended_by(self, error: Exception) -> Exception:
        """Return the public error that the client makes of an internal one; the link is closed."""
        transport = self._current_transport()
        if isinstance(error, AttributeError | TypeError):
            error = changed(error)
        if isinstance(error, FastPathError):
            self._close(transport)
            return error
        try:
            public: Exception = self._owner._handle_exception(error, is_consumer=self._is_consumer)
        except Exception as raised:
            public = raised
        self._close(transport)
        if public is not error:
            public.__cause__ = error
        return public

    def interrupt(self) -> None:
        """Make `open` fail in another thread that may be waiting for bytes; never raises."""
        with suppress(Exception):
            self._current_transport().sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Detach and disconnect; never raises."""
        self._close(self._current_transport())

    def _current_transport(self) -> Internal:
        """Return the transport, also of an object that was never fully opened."""
        handler = getattr(self._owner, "_handler", None)
        return getattr(getattr(handler, "_connection", None), "_transport", None)

    def _close(self, transport: Internal) -> None:
        with suppress(Exception):
            self._owner.close()
        if transport is not None:
            with suppress(Exception):
                transport.close()
        self._selector.close()


DETACHED = 0


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

    Raises:
        FastPathError: the client has changed.
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
        client = checked("client", self._client)
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
        return checked("consumer", consumer)

    def detach(self) -> None:
        """Detach and let the client read its frames again; the connection stays open.

        The peer must owe no event, because the client would decode it.
        """
        del self._transport.read
        self._link.detach(close=True)
        self._detached, self._handler._link = self._link, None

    def move(self, partition_id: str, start: int) -> None:
        """Make `open` attach to another partition, over the same connection.

        Raises:
            FastPathError: the client has changed.
        """
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
            FastPathError: the client has changed.
            Exception: the error that ended the attempt; see `ended_by`.
        """
        while not (self._owner._open() and self._is_alone()):
            if not is_wanted():
                return False
        self._handler = checked("handler", self._owner._handler)
        self._session = checked("session", self._handler._session)
        self._link = checked("link", self._handler._link)
        self._connection = checked("connection", self._handler._connection)
        self._transport = checked("transport", self._connection._transport)
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
            OSError: the connection is broken.
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
