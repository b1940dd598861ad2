"""What is read of a client that receives: of its loop, its receivers and its contexts.

If a release of the client lacks a name, the function reports that, and its caller continues without
it.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.fallback import note_version

log = logging.getLogger("eventhub_checkpoints")

STORE = "_checkpoint_store"
EXPIRY = "_partition_ownership_expiration_interval"
EXPIRES_AFTER = 180.0
"""Seconds after which an ownership that was not renewed counts as expired.

Source: azure-eventhub 5.15.1, `EventHubConsumerClient`, `partition_ownership_expiration_interval`:
six times `load_balancing_interval`, which is 30 s.
"""
UNKNOWN = object()
UNNAMED = "the namespace"
"""Namespace of a client that does not show it."""


def store_of(owner: object) -> Any:
    """Return the checkpoint store of a client or of a partition context.

    Every consumer with a store of this package is looked at here, so an untested release of the
    client is said here, once per process.

    Returns:
        The store; None if a client has none; `UNKNOWN` if it cannot be read.
    """
    note_version()
    return getattr(owner, STORE, UNKNOWN)


def scope_of(client: Any) -> Scope:
    """Return the hub and consumer group that a client reads, for messages.

    A name that cannot be read is replaced by a placeholder that no real name can equal.
    """
    address = getattr(client, "_address", None)
    return Scope._make(
        (
            getattr(address, "hostname", UNNAMED),
            client.eventhub_name,
            getattr(client, "_consumer_group", "of the client"),
        )
    )


def expiry_of(client: Any) -> float:
    """Return the seconds after which a client takes an ownership that was not renewed."""
    seconds = getattr(client, EXPIRY, None)
    if seconds is None:
        log.warning(
            "the client does not show when ownerships expire: %g s are assumed", EXPIRES_AFTER
        )
        return EXPIRES_AFTER
    return float(seconds)


def client_of(loop: Any) -> Any:
    """Return the consumer client of a loop; None: it is not known."""
    return getattr(loop, "_eventhub_client", None)


def has_ended(loop: Any) -> bool:
    """Return whether a client's loop was stopped, as far as that is known."""
    return not getattr(loop, "_running", True)


def open_links(loop: Any, seconds: float) -> None:
    """Let links that a sync client is opening go on; call it in the thread in which it receives.

    The client advances an opening link by one step of about ten each time it has looked at all its
    partitions, so beside others that are busy it takes as long as ten batches of each of them. A
    failure is left to the client, which meets it in its next step.

    Args:
        loop: the client's loop, which waits for this call.
        seconds: for which the client's other partitions may wait.

    Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer._open`, called by
    `_eventprocessor/event_processor.py`, `EventProcessor.start`.
    """
    end = time.monotonic() + seconds
    for consumer in list(getattr(loop, "_consumers", {}).values()):
        if not getattr(consumer, "running", False) or getattr(consumer, "handler_ready", True):
            continue
        try:
            while time.monotonic() < end and not opening_of(consumer)():
                pass
        except Exception as error:
            log.debug("a link could not be opened", exc_info=error)


def number_received(context: Any) -> int | None:
    """Return the sequence number of the last event that a handler was called with, if known."""
    number = getattr(getattr(context, "_last_received_event", None), "sequence_number", None)
    return number if isinstance(number, int) else None


class LinkAttempt(NamedTuple):
    """Attempt of a client to open the link of a partition.

    Attributes:
        link: the client's object for this attempt; after a refusal it makes another one. None: the
            attempt has not begun.
        position: from which events are requested.
    """

    link: object
    position: object


def link_attempt(loop: Any, partition_id: str) -> LinkAttempt | None:
    """Return the attempt that is under way; None: the link is open, or that is not known.

    Args:
        loop: of the client.
        partition_id: which partition.
    """
    receiver = getattr(loop, "_consumers", {}).get(partition_id)
    if is_link_open(receiver):
        return None
    return LinkAttempt(getattr(receiver, "_handler", None), getattr(receiver, "_offset", None))


def is_link_open(receiver: Any) -> bool:
    """Return whether a receiver of the client has a link, as far as that is known."""
    # A sync receiver runs while it opens its link, and is ready afterwards.
    return bool(getattr(receiver, "running", True) and getattr(receiver, "handler_ready", True))


def receiver_at(client: Any, partition_id: str, position: object) -> Any:
    """Return a receiver of a client that begins at a position, not opened; None: there is none.

    It has no owner level, so that it disconnects nobody.
    """
    make, group = getattr(client, "_create_consumer", None), scope_of(client).consumer_group
    return make and make(group, partition_id, position, lambda *_: None)


def opening_of(receiver: Any) -> Callable[[], Any]:
    """Return the receiver's method that opens its link, in steps if the client is sync."""
    opening: Callable[[], Any] = receiver._open
    return opening


def newest_known(context: Any) -> int | None:
    """Return the number of the newest event that the hub had when the last event was sent.

    The client knows it if its `receive` has `track_last_enqueued_event_properties=True`.
    """
    properties = getattr(context, "last_enqueued_event_properties", None) or {}
    number = properties.get("sequence_number")
    return number if isinstance(number, int) else None
