"""What the driver's errors mean."""

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
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    TruncateError,
)

from eventhub_checkpoints._wire.cassandra import CAS_WRITE_UNKNOWN
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)

UNKNOWN_OUTCOME = (
    *(Timeout, OperationTimedOut, Unavailable, CoordinationFailure, UnresolvableContactPoints),
    *(ConnectionException, NoConnectionsAvailable, NoHostAvailable, OSError),
    *(ServerError, OverloadedErrorMessage, IsBootstrappingErrorMessage, TruncateError),
)
ABSENT = ("does not exist", "doesn't exist", "unconfigured table", "unconfigured columnfamily")
"""What the server says of a table or keyspace that is not there; it has no code of its own."""


def mapped(error: Exception, keyspace: str) -> CheckpointStoreError:
    """The driver's error as one of ours."""
    said = " ".join(str(error).split()) or "no answer in time"
    text = f"keyspace {keyspace!r}: {said} ({type(error).__name__})"
    if refused := refusal(error):
        return StoreAccessError(f"keyspace {keyspace!r}: {refused}")
    if is_absent(error):
        return StoreNotReadyError(
            f"keyspace {keyspace!r} or its tables do not exist: create them by opening the store "
            f"once with create_keyspace=True ({said})"
        )
    if isinstance(error, UNKNOWN_OUTCOME) or getattr(error, "code", None) == CAS_WRITE_UNKNOWN:
        return StoreUnavailableError(text)
    return StoreError(text)


def is_absent(error: Exception) -> bool:
    """Whether the server says that a table or the keyspace is not there."""
    return isinstance(error, InvalidRequest) and any(word in str(error) for word in ABSENT)


def refusal(error: Exception) -> str:
    """Which right is missing, or that nobody was let in; `""` where the error is another."""
    if isinstance(error, Unauthorized):
        return f"the role lacks a right: {text_of(error)}"
    inner = error.errors if isinstance(error, NoHostAvailable) else None
    causes = list(inner.values()) if isinstance(inner, dict) else [error]
    for cause in causes:
        if isinstance(cause, AuthenticationFailed):
            return f"the user and password were refused, or are missing: {text_of(cause)}"
    return ""


def text_of(error: Exception) -> str:
    """What the driver says, in one line."""
    return " ".join(str(error).split())
