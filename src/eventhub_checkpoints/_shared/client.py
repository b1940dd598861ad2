"""Errors of the official client, and guards against the wrong kind of client.

The client's errors name neither hub nor partition, and report a wrong key as `client-error`.

Source: azure-eventhub 5.12.0 to 5.15.1, `exceptions.py`, `_transport/_pyamqp_transport.py`.
"""

import re
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from eventhub_checkpoints._shared.connection_errors import is_untrusted, why_unreached
from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    HubUnavailableError,
    InvalidCheckpointError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.stack import is_called_by_loop_of

NOT_FOUND, STOLEN, NO_CONNECTION = "not-found", "link:stolen", "socket-error"
UNAUTHORIZED, OUT_OF_RANGE = "unauthorized-access", "argument-out-of-range"
NO_SUCH_POSITION = ("argument-error", "invalid-offset")
"""Error conditions of the client. A receiver gets the conditions in `NO_SUCH_POSITION` for its
position only: other invalid arguments have conditions of their own.
"""

REFUSALS = (
    *(NOT_FOUND, STOLEN, UNAUTHORIZED, OUT_OF_RANGE, *NO_SUCH_POSITION),
    *("message-size-exceeded", "not-allowed"),
)
"""Conditions under which the same request would be refused again."""

PROXY_REFUSES = "via proxy status: 407"
"""How websocket-client reports that an HTTP proxy wants a password."""

TOKEN_REFUSED = re.compile(r"Status code: (\d+|None)")
"""Status with which a token was refused, in the message of an `AuthenticationError`. Without it,
the error reports the client's own time limit, or the name of a proxy that does not resolve.

Source: azure-eventhub 5.15.1, `_pyamqp/error.py`, `TokenAuthFailure`.
"""
NO_WEBSOCKET = "Failed to authenticate the connection"
"""How the client reports a name that its WebSocket could not resolve.

Source: azure-eventhub 5.15.1, `_pyamqp/_transport.py`, `WebSocketTransport.connect`.
"""
BUSY = (408, 429)


class Failure(Enum):
    """What an error of the client says about the hub."""

    REFUSED = auto()
    """It answers, or a proxy does, and the same request would be refused again."""
    UNREACHED = auto()
    """There is no connection to it."""
    UNANSWERED = auto()
    """It is mute or busy, or has ended the connection."""


def failure_of(error: Exception) -> Failure:
    """Classify an error: the hub refused the request, could not be reached, or did not answer."""
    condition, message = str(getattr(error, "error", None)), unmasked_message(error)
    if type(error).__name__ == "AuthenticationError":
        status = token_status(error)
        if status is not None or UNAUTHORIZED in condition:
            is_busy = status is not None and (status in BUSY or status >= 500)
            return Failure.UNANSWERED if is_busy else Failure.REFUSED
        return Failure.UNREACHED if NO_WEBSOCKET in message else Failure.UNANSWERED
    has_answered = condition.endswith(REFUSALS) or PROXY_REFUSES in message
    if has_answered or is_untrusted(error) or is_token_refused(error):
        return Failure.REFUSED
    if isinstance(error, FileNotFoundError):  # the file of certificates
        return Failure.REFUSED
    return Failure.UNREACHED if NO_CONNECTION in condition else Failure.UNANSWERED


def is_stolen(error: Exception) -> bool:
    """Return whether a link was ended, or refused, because of another one with an owner level."""
    return any(STOLEN in str(getattr(each, "error", "")) for each in (error, error.__cause__))


def token_status(error: Exception) -> int | None:
    """Return the status with which a token was refused: 0 if it is unknown, None if none was."""
    match = TOKEN_REFUSED.search(unmasked_message(error))
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
    lines = [line.strip() for line in unmasked_message(error).splitlines()]
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
        why = why_unreached(error) or "check the name, and the network between"
        if NO_WEBSOCKET in message:
            why += "; with httpProxy, check the name of the proxy"
        return HubUnavailableError(
            f"{namespace} with event hub {hub!r} cannot be reached: {why} ({message})"
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
    """Return the message for access that the hub, a proxy or a credential refused, else None."""
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
    "was the hub deleted and created again? Then its checkpoints belong to the old hub: reset "
    "them, or start from 'earliest'"
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
        if store is not None and is_called_by_loop_of(self._other_client):
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
    what = f"of type {kind_of(value)}"
    if isinstance(value, type):
        what = f"the class {value.__name__}, not a store of this class"
    return ConfigurationError(f"store is {what}; expected a checkpoint store for {client}{hint}")


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
