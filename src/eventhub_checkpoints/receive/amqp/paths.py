"""Choice between the fast and the public path of a stream, and translation of client errors."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client_errors import NOT_FOUND, OUT_OF_RANGE, STOLEN, explanation
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.decoder import Columns
from eventhub_checkpoints.receive.amqp.known_client import FastPathError, UnreadableFrameError
from eventhub_checkpoints.receive.ranges import ReceivePath
from eventhub_checkpoints.receive.stream import Stream, StreamWrapper


def is_final(error: Exception) -> bool:
    """Return whether a receiver refused for this reason would be refused again at once."""
    finals = (NOT_FOUND, STOLEN, OUT_OF_RANGE)
    return isinstance(error, EventHubError) and str(error.error).endswith(finals)


@contextmanager
def explained(address: Address, partition_id: str | None = None) -> Iterator[None]:
    """Translate the client's errors into those of this package.

    Args:
        address: the hub that the client calls.
        partition_id: the partition it receives from; None for a management call.

    Raises:
        ConfigurationError: the hub or the consumer group does not exist, or the key, the
            signature or the credential is refused.
        HubUnavailableError: any other reason why the client gave up.
    """
    try:
        yield
    except EventHubError as error:
        raise explanation(error, address.scope(), partition_id) from error


class ExplainedStream(StreamWrapper):
    """Stream of the client that raises the errors of this package.

    Args:
        stream: closed with this one.
        address: the hub.
        partition_id: which partition.
    """

    def __init__(self, stream: Stream, address: Address, partition_id: str) -> None:
        super().__init__(stream)
        self._address, self._partition_id = address, partition_id

    def next(self, timeout: float) -> Columns | None:
        with explained(self._address, self._partition_id):
            return self._stream.next(timeout)


_LOGGER = logging.getLogger(__name__)
_SAID: set[str] = set()

OpenAt = Callable[[int], Stream]
"""Function that opens a stream at a sequence number."""


def open_by(path: ReceivePath, start: int, fast: OpenAt, public: OpenAt) -> Stream:
    """Open a stream at a sequence number, by the chosen path.

    Raises:
        FastPathError: the path is `fast`, and it cannot be used.
    """
    if path == "public":
        return public(start)
    if path == "fast":
        return fast(start)
    return EitherStream(start, fast, public)


class EitherStream(Stream):
    """Stream that uses the fast path where possible, then the public one, with equal columns."""

    def __init__(self, start: int, fast: OpenAt, public: OpenAt) -> None:
        self._next, self._public = start, public
        self._unreadable = ""
        try:
            self._stream = fast(start)
        except FastPathError as error:
            say_once(error)
            self._stream = public(start)

    @property
    def trouble(self) -> str:
        return self._stream.trouble or self._unreadable

    def next(self, timeout: float) -> Columns | None:
        try:
            columns = self._stream.next(timeout)
        except FastPathError as error:
            say_once(error)
            if isinstance(error, UnreadableFrameError):
                # The client may not be able to either, and does not report it.
                self._unreadable = str(error)
            self._stream.close()
            self._stream = self._public(self._next)
            columns = self._stream.next(timeout)
        if columns and columns.numbers[-1] >= self._next:
            self._next, self._unreadable = columns.numbers[-1] + 1, ""
        return columns

    def close(self) -> None:
        self._stream.close()


def say_once(error: FastPathError) -> None:
    """Log why the fast path is left, once per process and reason."""
    if str(error) not in _SAID:
        _SAID.add(str(error))
        _LOGGER.warning("%s; events are received through the client's public API, slower", error)
