"""Mapping of the Cassandra driver's errors."""

from collections.abc import Mapping

from cassandra import (
    AuthenticationFailed,
    CoordinationFailure,
    InvalidRequest,
    OperationTimedOut,
    Timeout,
    Unauthorized,
    Unavailable,
    UnresolvableContactPoints,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import (
    ConfigurationException,
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    TruncateError,
)

from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.cassandra.driver import shortened
from eventhub_checkpoints.stores.cassandra.protocol import CAS_WRITE_UNKNOWN

UNKNOWN_OUTCOME = (
    *(Timeout, Unavailable, CoordinationFailure),
    *(ConnectionException, NoConnectionsAvailable, OSError),
    *(ServerError, OverloadedErrorMessage, IsBootstrappingErrorMessage, TruncateError),
)
ABSENT = ("does not exist", "doesn't exist", "unconfigured table", "unconfigured columnfamily")
"""The server's messages for a missing table or keyspace, which has no error code."""


TLS = {
    "WRONG_VERSION_NUMBER": (
        ConfigurationError,
        "the server does not use TLS: leave ssl_context out, or name the port that does",
    ),
    "CERTIFICATE_VERIFY_FAILED": (
        StoreAccessError,
        "the server's certificate is not trusted: load its authority into ssl_context",
    ),
}
"""TLS failures that no retry can fix, by the reason in OpenSSL's message."""


def unreached(error: Exception, where: str) -> CheckpointStoreError | None:
    """Return the error for an unreachable cluster or a refused login; None for other errors."""
    if isinstance(error, UnresolvableContactPoints):
        return StoreUnavailableError(
            f"{where}: the names of the contact points cannot be resolved; check them, and DNS"
        )
    if isinstance(error, NoHostAvailable):
        return no_host(error, where)
    if isinstance(error, AuthenticationFailed):
        return login_refused(error, where)
    if isinstance(error, TimeoutError | OperationTimedOut):
        return StoreUnavailableError(
            f"{where}: no answer in time; if it never answers, check hosts, port and ssl_context"
        )
    return None


def no_host(error: NoHostAvailable, where: str) -> CheckpointStoreError:
    """Return the error for a cluster without a usable node."""
    # The driver passes the nodes with their errors, or only the nodes.
    nodes = error.errors if isinstance(error.errors, Mapping) else dict.fromkeys(error.errors or ())
    for cause in nodes.values():
        if isinstance(cause, AuthenticationFailed):
            return login_refused(cause, where)
    reasons = {str(host): reason(cause) for host, cause in nodes.items()}
    causes = shortened([f"{host}: {why}" for host, why in sorted(reasons.items())])
    for words, (kind, advice) in TLS.items():
        if reasons and all(words in why for why in reasons.values()):
            return kind(f"{where}: {advice} ({causes})")
    return StoreUnavailableError(
        f"{where}: no node could be used ({causes}); check hosts and port, and that a node runs "
        "there; pass ssl_context if the cluster uses TLS"
    )


def login_refused(error: Exception, where: str) -> StoreAccessError:
    """Return the error for a refused login."""
    return StoreAccessError(
        f"{where}: the user and password were refused, or are missing ({text_of(error)}); give "
        "both, in the URL or as credential=(USER, PASSWORD)"
    )


def reason(error: Exception | None) -> str:
    """Return why one node could not be used."""
    if error is None:
        return "no connection"
    if isinstance(error, TimeoutError | OperationTimedOut):
        return "no answer in time"
    # The driver puts the address, which the message already begins with, before the cause.
    return text_of(error).rpartition("Last error: ")[2] or type(error).__name__


def mapped(error: Exception, where: str) -> CheckpointStoreError:
    """Convert a driver's error to an error of this package.

    Args:
        error: the driver's error, or a timeout.
        where: cluster and keyspace, for messages.
    """
    if (unreachable := unreached(error, where)) is not None:
        return unreachable
    message = text_of(error)
    if isinstance(error, Unauthorized):
        return StoreAccessError(f"{where}: the role lacks a right: {message}")
    if is_absent(error):
        return StoreNotReadyError(
            f"{where} or its tables do not exist: create them with store.create(), "
            f"create_keyspace=True or create = true in a configuration ({message})"
        )
    if isinstance(error, ConfigurationException):
        return ConfigurationError(
            f"{where}: it cannot be created with this replication; expected names of datacenters "
            f"that the cluster has ({message})"
        )
    if isinstance(error, Unavailable):
        return StoreUnavailableError(
            f"{where}: too few replicas are up: {error.alive_replicas} of the "
            f"{error.required_replicas} that are needed; start the nodes, or set the keyspace's "
            f"replication factor to at most the number of nodes in the datacenter ({message})"
        )
    text = f"{where}: {message} ({type(error).__name__})"
    if isinstance(error, UNKNOWN_OUTCOME) or getattr(error, "code", None) == CAS_WRITE_UNKNOWN:
        return StoreUnavailableError(text)
    return StoreError(text)


def is_absent(error: Exception) -> bool:
    """Return whether the server reports that a table or the keyspace does not exist."""
    return isinstance(error, InvalidRequest) and any(word in str(error) for word in ABSENT)


def text_of(error: Exception) -> str:
    """Return the driver's message, in one line."""
    return masked(" ".join(unmasked_message(error).split()))
