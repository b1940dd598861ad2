"""What the fast and the public path offer: batches are put, and answered by the hub."""

from abc import ABC, abstractmethod

from eventhub_checkpoints.send.filling import Batch


class Outlet(ABC):
    """Way to the hub for complete batches.

    Attributes:
        accepted: number of events that the hub has confirmed.
    """

    accepted: int = 0

    @property
    @abstractmethod
    def limit(self) -> int:
        """Largest message that the hub accepts, in bytes; connects if necessary.

        Raises:
            EventHubError: the client's error, such as a hub that does not exist.
        """

    @abstractmethod
    def put(self, batch: Batch) -> None:
        """Send a batch after all earlier ones of its partition; waits while too many wait.

        Raises:
            EventHubError: this batch or an earlier one is refused, or not confirmed in time.
        """

    @abstractmethod
    def flush(self) -> None:
        """Wait until all batches are confirmed; raises as `put`."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect; never raises."""

    @property
    def is_usable(self) -> bool:
        """Return whether the connection, idle since a flush, still serves the next batch."""
        return True

    @abstractmethod
    def give_up(self, seconds: float) -> int:
        """Send nothing more; as `Sender.give_up`."""

    def unconfirmed(self) -> list[Batch]:
        """Return the batches that were put and not confirmed, in the order in which they were put.

        The hub may have stored some of them.
        """
        return []
