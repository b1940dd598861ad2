"""The private attributes of azure-eventhub that are read, all in this module.

Nothing else in the package reads one, and nothing is changed. Where a release of the client does
not have what is asked for, each function says so, and its caller goes on without.

Source: azure-eventhub 5.12.0 to 5.15.1.
"""

import inspect
from typing import Any

from eventhub_checkpoints.records import Scope

STORE = "_checkpoint_store"
"""Of a client and of a partition context, sync and aio."""
UNKNOWN = object()

try:
    from azure.eventhub._eventprocessor.event_processor import EventProcessor

    RECEIVING: object = EventProcessor.start.__code__
except (ImportError, AttributeError):
    RECEIVING = None


def store_of(one: object) -> Any:
    """Return the checkpoint store of a client or of a partition context.

    Returns:
        The store; None if a client has none; `UNKNOWN` if that cannot be read.
    """
    return getattr(one, STORE, UNKNOWN)


def scope_of(client: Any) -> Scope:
    """Return which hub a client reads, and in which consumer group, for people.

    A name that cannot be read is told from one that can by its words.
    """
    address = getattr(client, "_address", None)
    return Scope(
        getattr(address, "hostname", "the namespace"),
        client.eventhub_name,
        getattr(client, "_consumer_group", "of the client"),
    )


def is_client_closed() -> bool:
    """Return whether this thread runs a callback of a sync client that was closed meanwhile.

    A sync client that is closed does not interrupt a handler, and tells nobody. The loop in which
    it calls its handlers is found on the stack of this thread. False for an aio client, which
    cancels its handlers, and where it cannot be known.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not RECEIVING:
        frame = frame.f_back
    return frame is not None and not getattr(frame.f_locals.get("self"), "_running", True)
