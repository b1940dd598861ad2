"""Source of a partition's events: what a session has to know of whatever delivers them."""

from typing import Any, Protocol

from eventhub_checkpoints.sdk.consumer import LinkAttempt


class Source(Protocol):
    """Delivers the events of one partition to its session, one by one or in batches.

    A session counts what is delivered by rows of sequence numbers, whatever the events are made of.
    What it cannot count is asked here, by the watchdog, from any thread; nothing may wait.
    """

    @property
    def client(self) -> Any:
        """Client that can ask the hub about the partition; None: it is not known, or gone."""

    @property
    def reached(self) -> int | None:
        """Sequence number of the last event that was delivered, if it is known."""

    @property
    def newest(self) -> int | None:
        """Sequence number of the last event of the hub that the source knows of."""

    @property
    def attempt(self) -> LinkAttempt | None:
        """Attempt to open the link; None: the link is open, or that is not known."""

    @property
    def is_lost(self) -> bool:
        """Whether the task or thread that receives has ended, and the partition was not closed."""

    @property
    def is_drained(self) -> bool:
        """Whether it was closed, and only waits for handlers."""

    def handler(self) -> str | None:
        """Return where the handler is that runs with its events; None: none runs."""
