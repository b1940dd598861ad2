"""Connection of the client whose frames this package handles."""

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress

from eventhub_checkpoints.sdk.fallback import FastPathError, changed
from eventhub_checkpoints.sdk.private_names import Internal

DETACHED, ATTACHED = 0, 3
"""Values of the client's `LinkState`."""


class OfficialConnection:
    """Connection of a receiver or a sender of the client, whose frames this package handles.

    Args:
        owner: the client's object that opens and closes it, a consumer or a producer.
        is_consumer: whether `owner` is a consumer.
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
        """Send encoded frames."""
        self._transport.write(frame)

    def send_within(self, timeout: float, *pieces: bytes) -> None:
        """Send pieces of encoded frames.

        Args:
            timeout: seconds for which the peer may accept no bytes. The client's own time-out, a
                fifth of a second, is meant for reading; a longer one is kept.
            pieces: each is sent by one call.
        """
        sock = self._transport.sock
        if sock is None:
            raise ConnectionError("the connection is closed")
        client_timeout = sock.gettimeout()
        sock.settimeout(max(client_timeout or 0.0, timeout))
        try:
            for piece in pieces:
                self.send(piece)
        finally:
            sock.settimeout(client_timeout)

    def ended_by(self, error: Exception) -> Exception:
        """Close the link, and return the public error that the client makes of an internal one."""
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
