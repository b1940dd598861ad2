"""All private attributes of azure-eventhub that this package reads.

No other module reads one, and none is modified. If a release of the client lacks an attribute, the
function reports that, and its caller continues without it.

Source: azure-eventhub 5.12.0 to 5.15.1.
"""

import inspect
from typing import Any

from eventhub_checkpoints.records import Scope

STORE = "_checkpoint_store"
"""Attribute of a client and of a partition context, sync and aio."""
UNKNOWN = object()

try:
    from azure.eventhub._eventprocessor.event_processor import EventProcessor

    RECEIVING: object = EventProcessor.start.__code__
except (ImportError, AttributeError):
    RECEIVING = None


def store_of(one: object) -> Any:
    """Return the checkpoint store of a client or of a partition context.

    Returns:
        The store; None if a client has none; `UNKNOWN` if it cannot be read.
    """
    return getattr(one, STORE, UNKNOWN)


def scope_of(client: Any) -> Scope:
    """Return the hub and consumer group that a client reads, for messages.

    A name that cannot be read is replaced by a placeholder that no real name can equal.
    """
    address = getattr(client, "_address", None)
    return Scope(
        getattr(address, "hostname", "the namespace"),
        client.eventhub_name,
        getattr(client, "_consumer_group", "of the client"),
    )


def is_client_closed() -> bool:
    """Return whether this thread runs a callback of a sync client that has been closed since.

    Closing a sync client neither interrupts nor notifies a handler. The loop in which the client
    calls its handlers is found on the stack of this thread. False for an aio client, which
    cancels its handlers, and where the state cannot be determined.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not RECEIVING:
        frame = frame.f_back
    return frame is not None and not getattr(frame.f_locals.get("self"), "_running", True)
