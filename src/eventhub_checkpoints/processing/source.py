"""Source of a partition's events: what a session has to know of whatever delivers them."""

from typing import Any, Protocol

from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk import consumer
from eventhub_checkpoints.sdk.consumer import LinkAttempt


class BatchClient:
    """Client that delivers Arrow batches, with the methods of `EventHubConsumerClient`.

    An `EventProcessor` uses it as that client. Its `receive_batch` passes sequences of `EventData`
    to the handler, whose attribute `arrow` is what `process_batch` is called with, and contexts
    whose attribute `source` is a `Source`.

    Attributes:
        scope: the hub and the consumer group.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        store: its checkpoint store.
    """

    scope: Scope
    expires_after: float
    store: Any


def scope_of(client: Any) -> Scope:
    """Return the hub and consumer group that a client reads, as far as it shows them."""
    return client.scope if isinstance(client, BatchClient) else consumer.scope_of(client)


def expiry_of(client: Any) -> float:
    """Return the seconds after which a client takes an ownership that was not renewed."""
    is_ours = isinstance(client, BatchClient)
    return client.expires_after if is_ours else consumer.expiry_of(client)


def store_of(client: Any) -> Any:
    """Return the checkpoint store of a client, as `consumer.store_of` does."""
    return client.store if isinstance(client, BatchClient) else consumer.store_of(client)


class Source(Protocol):
    """Delivers the events of one partition to its session, one by one or in batches.

    A session counts what is delivered by rows of sequence numbers, whatever the events are made of.
    What it cannot count is asked here, by the watchdog, from any thread; nothing may wait.
    """

    shares_thread: bool
    """Whether the handlers of all partitions of the client run in one thread."""

    @property
    def client(self) -> Any:
        """Return the client that can query the hub about it; None: it is not known, or gone."""

    @property
    def reached(self) -> int | None:
        """Return the sequence number of the last event that was delivered, if it is known."""

    @property
    def newest(self) -> int | None:
        """Return the sequence number of the last event of the hub that the source knows of."""

    @property
    def attempt(self) -> LinkAttempt | None:
        """Return the attempt to open the link; None: the link is open, or that is not known."""

    @property
    def is_lost(self) -> bool:
        """Return whether the task or thread that receives has ended without closing it."""

    @property
    def is_drained(self) -> bool:
        """Return whether it was closed, and only waits for handlers."""

    def handler(self) -> str | None:
        """Return the line that a handler of its events has reached; None: no handler runs."""
