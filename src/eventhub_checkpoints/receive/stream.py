"""One partition's events, pulled."""

from abc import ABC, abstractmethod
from typing import Self

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns


class Stream(ABC):
    """The events of one partition from a position on, in columns, until it is closed.

    No transport gives it an owner level: retries and speculative tasks may read the same events
    side by side, and nobody is put off the partition. After a reconnect it may repeat events;
    the caller drops by sequence number.

    """

    @property
    def reached(self) -> int:
        """What is not given of the events before this sequence number does not exist.

        0 where the transport does not tell.
        """
        return 0

    @property
    def is_over(self) -> bool:
        """Whether the transport has told that no more will come; it may take that back."""
        return False

    @property
    def trouble(self) -> str:
        """Why nothing comes, as far as the transport knows; empty where it does not."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def next(self, timeout: float) -> Columns | None:
        """The next events in the order of the partition; None after `timeout` (s) without any.

        They may be no rows at all where `reached` has gone on without. None comes at once from
        one that is over.

        Raises:
            ConfigurationError: the hub or consumer group does not exist, or access is refused.
            HubUnavailableError: the transport gave up after its own retries.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop receiving; connections may be closed in the background."""


class StreamWrapper(Stream):
    """A stream that changes how another one is read; the other is closed with it."""

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
