"""What a transport offers to those who send."""

from abc import ABC, abstractmethod
from typing import Self

from eventhub_checkpoints.send.events import EventRows


class Sender(ABC):
    """Sends rows to one hub, from one thread, until it is closed."""

    @property
    @abstractmethod
    def accepted(self) -> int:
        """Number of events that the hub has confirmed.

        Others may have been stored, too, where the answer was lost.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def send(self, rows: EventRows) -> None:
        """Send rows; returns before the hub has confirmed them, and waits while it is behind.

        Events of one partition id or key stay in order.

        Raises:
            ConfigurationError: a row cannot be sent, the hub does not exist, or access is refused.
            HubUnavailableError: the hub did not confirm a batch in time.
        """

    @abstractmethod
    def flush(self) -> None:
        """Wait until the hub has confirmed everything; raises as `send`."""

    @abstractmethod
    def give_up(self, seconds: float) -> int:
        """Send nothing more, and wait for the answers to what was sent; for use after an error.

        Args:
            seconds: for which it waits at most.

        Returns:
            Number of events that may be in the hub though it has not confirmed them.
        """

    @property
    @abstractmethod
    def is_usable(self) -> bool:
        """Return whether the connection, idle since a flush, still serves the next rows."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect, without waiting for what is not confirmed."""
