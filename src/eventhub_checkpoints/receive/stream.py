"""Pull interface to the events of one partition."""

from abc import ABC, abstractmethod
from typing import Self

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns


class Stream(ABC):
    """Events of one partition from a position on, in columns, until it is closed.

    No transport gives it an owner level: retries and speculative tasks may read the same events
    concurrently, and no other reader is disconnected. After a reconnect it may repeat events; the
    caller drops them by sequence number.
    """

    @property
    def reached(self) -> int:
        """Sequence number before which no event is missing from those returned.

        Numbers below it that were not returned do not exist. 0 where the transport does not report
        it.
        """
        return 0

    @property
    def is_over(self) -> bool:
        """Return whether the transport reported that no more events follow; this may be revoked."""
        return False

    @property
    def trouble(self) -> str:
        """Return why no events arrive, as far as the transport knows; else an empty string."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def next(self, timeout: float) -> Columns | None:
        """Return the next events in partition order; None after `timeout` (s) without any.

        The columns may be empty where `reached` has advanced without events. A stream that is over
        returns None immediately.

        Raises:
            ConfigurationError: the hub or consumer group does not exist, or access is refused.
            HubUnavailableError: the transport gave up after its own retries.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop receiving; connections may be closed in the background."""


class StreamWrapper(Stream):
    """Stream that changes how another stream is read; both are closed together."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    @property
    def reached(self) -> int:
        return self._stream.reached

    @property
    def is_over(self) -> bool:
        return self._stream.is_over

    @property
    def trouble(self) -> str:
        return self._stream.trouble

    def close(self) -> None:
        self._stream.close()
