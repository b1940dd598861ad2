"""The official client: its private attributes, its errors, and guards against the wrong kind.

Every private attribute of azure-eventhub that this package reads is read here, and none is
modified; two private methods are called, in `receiver_at` and `opening_of`. If a release of the
client lacks one, the function reports that, and its caller continues without it. The client's
errors name neither hub nor partition, and report a wrong key as `client-error`.

Source: azure-eventhub 5.12.0 to 5.15.1; errors: `exceptions.py`, `_transport/_pyamqp_transport.py`.
"""

import inspect
import logging
import re
import sys
import time
from collections.abc import Callable
from enum import Enum, auto
from types import FrameType
from typing import Any, NamedTuple

from eventhub_checkpoints._shared.connection_errors import is_untrusted, why_unreached
from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    HubUnavailableError,
    InvalidCheckpointError,
)
from eventhub_checkpoints.records import Scope

log = logging.getLogger("eventhub_checkpoints")

STORE = "_checkpoint_store"
"""Attribute of a client and of a partition context, sync and aio."""
EXPIRY = "_partition_ownership_expiration_interval"
"""Attribute of a client, sync and aio."""
EXPIRES_AFTER = 180.0
"""Seconds after which an ownership that was not renewed counts as expired.

Source: azure-eventhub 5.15.1, `EventHubConsumerClient`, `partition_ownership_expiration_interval`:
six times `load_balancing_interval`, which is 30 s.
"""
UNKNOWN = object()
UNNAMED = "the namespace"
"""Namespace of a client that does not show it."""
PROCESSORS = "azure.eventhub._eventprocessor", "azure.eventhub.aio._eventprocessor"
"""Packages of the client's loops that call handlers."""

try:
    from azure.eventhub._eventprocessor.event_processor import EventProcessor

    RECEIVING: object = EventProcessor.start.__code__
except (ImportError, AttributeError):
    RECEIVING = None


def store_of(owner: object) -> Any:
    """Return the checkpoint store of a client or of a partition context.

    Returns:
        The store; None if a client has none; `UNKNOWN` if it cannot be read.
    """
    return getattr(owner, STORE, UNKNOWN)


def scope_of(client: Any) -> Scope:
    """Return the hub and consumer group that a client reads, for messages.

    A name that cannot be read is replaced by a placeholder that no real name can equal.
    """
    address = getattr(client, "_address", None)
    return Scope(
        getattr(address, "hostname", UNNAMED),
        client.eventhub_name,
        getattr(client, "_consumer_group", "of the client"),
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


def calling_loop() -> Any:
    """Return the loop of a client that calls the handler that runs here; None: it is not known.

    A handler is not passed its client. The client's loop is found on the stack.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if is_client_frame(frame):
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


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
            log.debug("a link could not be opened: %r", error)


def is_client_frame(frame: FrameType) -> bool:
    """Return whether a frame is one of the client's loop that receives and calls handlers."""
    module = frame.f_globals.get("__name__", "")
    return bool(module.startswith(PROCESSORS) and module.endswith(".event_processor"))


def handled_context(frame: FrameType) -> Any:
    """Return the partition context whose handler a frame of the client calls; None: it does not."""
    if frame.f_code.co_name != "_on_event_received" or not is_client_frame(frame):
        return None
    return frame.f_locals.get("partition_context")


def place_of(frame: FrameType) -> str:
    """Return the file, line and function of a frame, for messages."""
    code = frame.f_code
    return f"{code.co_filename}, line {frame.f_lineno}, in {code.co_qualname}"


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


NOT_FOUND, STOLEN, NO_CONNECTION = "not-found", "link:stolen", "socket-error"
UNAUTHORIZED, OUT_OF_RANGE = "unauthorized-access", "argument-out-of-range"
NO_SUCH_POSITION = ("argument-error", "invalid-offset")
"""Error conditions of the client. Of a receiver, the one of an argument is about its position: what
else it may get wrong has its own.
"""

REFUSALS = (
    *(NOT_FOUND, STOLEN, UNAUTHORIZED, OUT_OF_RANGE, *NO_SUCH_POSITION),
    *("message-size-exceeded", "not-allowed"),
)
"""Conditions under which the same request would be refused again."""

PROXY_REFUSES = "via proxy status: 407"
"""How websocket-client reports that an HTTP proxy wants a password."""

TOKEN_REFUSED = re.compile(r"Status code: (\d+|None)")
"""Answer to a token, in an `AuthenticationError`; it also stands for the client's own time limit
and for a proxy's name that does not resolve.

Source: azure-eventhub 5.15.1, `_pyamqp/error.py`, `TokenAuthFailure`.
"""
NO_WEBSOCKET = "Failed to authenticate the connection"
"""How the client reports a name that its WebSocket could not resolve.

Source: azure-eventhub 5.15.1, `_pyamqp/_transport.py`, `WebSocketTransport.connect`.
"""
BUSY = (408, 429)


class Failure(Enum):
    """What an error of the client says of the hub."""

    REFUSED = auto()
    """It answers, or a proxy does, and the same request would be refused again."""
    UNREACHED = auto()
    """There is no connection to it."""
    UNANSWERED = auto()
    """It is mute or busy, or has ended the connection."""


def failure_of(error: Exception) -> Failure:
    """Return whether a hub has refused a request, or could not be reached, or did not answer."""
    condition, message = str(getattr(error, "error", None)), str(error)
    if type(error).__name__ == "AuthenticationError":
        status = token_status(error)
        if status is not None or UNAUTHORIZED in condition:
            is_busy = status is not None and (status in BUSY or status >= 500)
            return Failure.UNANSWERED if is_busy else Failure.REFUSED
        return Failure.UNREACHED if NO_WEBSOCKET in message else Failure.UNANSWERED
    has_answered = condition.endswith(REFUSALS) or PROXY_REFUSES in message
    if has_answered or is_untrusted(error) or is_token_refused(error):
        return Failure.REFUSED
    if isinstance(error, FileNotFoundError):  # of certificates
        return Failure.REFUSED
    return Failure.UNREACHED if NO_CONNECTION in condition else Failure.UNANSWERED


def token_status(error: Exception) -> int | None:
    """Return with which status the hub has refused a token, 0 if with none; None: it has not."""
    match = TOKEN_REFUSED.search(str(error))
    if match is None:
        return None
    return int(match[1]) if match[1].isdigit() else 0


def is_token_refused(error: Exception) -> bool:
    """Return whether the credential's own service has refused a token."""
    cause = error.__cause__
    is_of_credential = type(cause).__name__ == "ClientAuthenticationError"
    return is_of_credential and getattr(cause, "response", None) is not None


def reason(error: Exception) -> str:
    """Return the client's description of an error, without the lines that repeat it."""
    lines = [line.strip() for line in str(error).splitlines()]
    ends = (at for at, line in enumerate(lines) if line.startswith("Error"))
    parts = dict.fromkeys(filter(None, lines[: next(ends, None)]))
    return ", ".join(parts) or type(error).__name__


def explanation(
    error: Exception, scope: Scope, partition_id: str | None = None, right: str = "listen"
) -> CheckpointStoreError:
    """Return the error of this package that corresponds to an error of the client.

    Args:
        error: an `EventHubError`.
        scope: the hub and the consumer group in which it is read.
        partition_id: the partition that was to be read; None for a management request.
        right: what the key or the credential must have the right to do.
    """
    namespace, hub, group = scope
    condition, message = str(getattr(error, "error", None)), reason(error)
    failure = failure_of(error)
    has_no_hub = token_status(error) == 404 or (partition_id is None and NOT_FOUND in condition)
    if failure is Failure.REFUSED and has_no_hub:
        return ConfigurationError(f"{namespace} has no event hub {hub!r}")
    if failure is Failure.REFUSED and (refusal := refused_connection(error, scope, right)):
        return ConfigurationError(refusal)
    if failure is Failure.UNREACHED:
        why = why_unreached(error) or "is the name right, and the way there open?"
        if NO_WEBSOCKET in message:
            why += "; with httpProxy, this is the name of the proxy"
        return HubUnavailableError(
            f"{namespace}, where event hub {hub!r} should be, cannot be reached: {why} ({message})"
        )
    if partition_id is None:
        return HubUnavailableError(f"{namespace} did not answer about event hub {hub!r}: {message}")
    partition = f"partition {partition_id} of {namespace}/{hub}"
    if NOT_FOUND in condition:
        return ConfigurationError(
            f"{partition} cannot be read: {namespace}/{hub} has no consumer group "
            f"{group!r}, or the hub was deleted ({message})"
        )
    if OUT_OF_RANGE in condition:
        return ConfigurationError(f"{partition} does not exist ({message})")
    if condition.endswith(NO_SUCH_POSITION):
        return InvalidCheckpointError(partition_id, message, POSITION_GONE)
    if STOLEN in condition:
        return HubUnavailableError(
            f"{partition} is held by another receiver in consumer group "
            f"{group!r} that has an equal or higher owner level, such as a consumer of that group. "
            f"{OWN_GROUP}, or stop that receiver ({message})"
        )
    return HubUnavailableError(f"{partition} cannot be read: {message}")


def refused_connection(error: Exception, scope: Scope, right: str) -> str | None:
    """Return what to do where a way to the hub was refused; None for any other refusal."""
    namespace, message = scope.fully_qualified_namespace, reason(error)
    is_denied = UNAUTHORIZED in str(getattr(error, "error", None))
    if is_denied or type(error).__name__ == "AuthenticationError":
        return (
            f"{namespace} refuses access to event hub {scope.eventhub_name!r}: wrong key, expired "
            "signature, or missing right. Check the connection string or the credential, and its "
            f"right to {right} ({message})"
        )
    if is_token_refused(error):
        return f"the credential gets no token for {namespace}: {message}"
    if PROXY_REFUSES in message:
        return (
            f"the HTTP proxy on the way to {namespace} refuses the connection: wrong or missing "
            f"user or password. Check httpProxy ({message})"
        )
    if is_untrusted(error):
        return (
            f"{namespace}: its certificate is not trusted: name the file of its authority as "
            f"connection_verify, in Spark connectionVerify ({message})"
        )
    return None


POSITION_GONE = (
    "was it deleted and created again? Then its checkpoints belong to the old one: reset them, or "
    "start from 'earliest'"
)

OWN_GROUP = (
    "Read in a consumer group that nobody else reads (Spark's option consumerGroup; with "
    "checkpointConsumerGroup a job still begins at the checkpoints of the other group)"
)

SYNC, AIO = "eventhub_checkpoints", "eventhub_checkpoints.aio"
SYNC_CLIENT, AIO_CLIENT = "azure.eventhub", "azure.eventhub.aio"


class ClientGuard:
    """Store method that a client of the wrong kind, sync or async, cannot look up.

    That client would await a list, or iterate over a coroutine, and report only Python's
    `TypeError`. All other code gets the plain method: a sync store works inside a running event
    loop, as in a notebook, and an async method stays a coroutine function.

    Args:
        method: the method that all other code gets.
        other_client: the package of the client that is refused.

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py` and its aio twin:
    `list_ownership`, or with `partition_id=` `list_checkpoints`, is the first attribute of its
    store that the client looks up.
    """

    def __init__(self, method: Callable[..., Any], other_client: str) -> None:
        self.__wrapped__ = method
        self._other_client = other_client

    def __get__(self, store: Any, owner: type | None = None) -> Any:
        module = sys._getframe(1).f_globals.get("__name__", "")
        if store is not None and module.startswith(f"{self._other_client}._eventprocessor."):
            raise wrong_client(store, self._other_client)
        return self.__wrapped__.__get__(store, owner)


def wrong_client(value: object, client: str) -> ConfigurationError:
    """Return the error for an object that is used with a client of the wrong kind."""
    kind, package = ("synchronous", AIO) if client == AIO_CLIENT else ("asynchronous", SYNC)
    or_open = f", or open_store of {package}" if hasattr(value, "from_url") else ""
    return ConfigurationError(
        f"{type(value).__name__} is {kind}, and the client is that of {client}: use "
        f"`{twin_import(value)}`{or_open}"
    )


def no_store(value: object, client: str) -> ConfigurationError:
    """Return the error for an object that is passed as a store but is not one."""
    # The value is not shown: a URL may hold a password.
    hint = "; open_store makes one of a URL" if isinstance(value, str) else ""
    return ConfigurationError(
        f"store is of type {kind_of(value)}; expected a checkpoint store for {client}{hint}"
    )


def twin_import(value: object) -> str:
    """Return the import of the class's counterpart, sync or async.

    For a class of another package, that of its base class in this package.
    """
    kind = next(base for base in type(value).__mro__ if base.__module__.startswith(f"{SYNC}."))
    module, name = kind.__module__, getattr(kind, "twin", "") or kind.__name__
    mine, other = (AIO, SYNC) if f"{module}.".startswith(f"{AIO}.") else (SYNC, AIO)
    if not hasattr(sys.modules[mine], name):  # both root packages export the same names
        other += module.removeprefix(mine)
    return f"from {other} import {name}"
