"""Conversion of the official client's errors to errors of this package.

The client's errors name neither hub nor partition, and report a wrong key as `client-error`.

Source: azure-eventhub 5.15.1, `exceptions.py` and `_transport/_pyamqp_transport.py`.
"""

from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    HubUnavailableError,
)
from eventhub_checkpoints.records import Scope

NOT_FOUND, STOLEN, NO_CONNECTION = "not-found", "link:stolen", "socket-error"
UNAUTHORIZED, OUT_OF_RANGE = "unauthorized-access", "argument-out-of-range"
"""Error conditions of the client."""


def reason(error: Exception) -> str:
    """Return the client's description of an error, without the lines that repeat it."""
    lines = [line.strip() for line in str(error).splitlines()]
    ends = (at for at, line in enumerate(lines) if line.startswith("Error"))
    return ", ".join(filter(None, lines[: next(ends, None)])) or type(error).__name__


def explanation(
    error: Exception, scope: Scope, partition_id: str | None = None
) -> CheckpointStoreError:
    """Return the error of this package that corresponds to an error of the client.

    Args:
        error: an `EventHubError`.
        scope: the hub and the consumer group in which it is read.
        partition_id: the partition that was to be read; None for a management request.
    """
    namespace, hub, group = scope
    condition, said = str(getattr(error, "error", None)), reason(error)
    if type(error).__name__ == "AuthenticationError" or UNAUTHORIZED in condition:
        return ConfigurationError(
            f"{namespace} refuses access to event hub {hub!r}: wrong key, expired signature, or "
            "missing right. Check the connection string or the credential, and its right to "
            f"listen ({said})"
        )
    if NO_CONNECTION in condition:
        return HubUnavailableError(
            f"{namespace}, where event hub {hub!r} should be, cannot be reached. Is the name "
            f"right, and the way there open? {said}"
        )
    if partition_id is None:
        if NOT_FOUND in condition:
            return ConfigurationError(f"{namespace} has no event hub {hub!r}")
        return HubUnavailableError(f"{namespace} did not answer about event hub {hub!r}: {said}")
    partition = f"partition {partition_id} of {namespace}/{hub}"
    if NOT_FOUND in condition:
        return ConfigurationError(
            f"{partition} cannot be read: {namespace}/{hub} has no consumer group "
            f"{group!r}, or the hub was deleted ({said})"
        )
    if OUT_OF_RANGE in condition:
        return ConfigurationError(f"{partition} does not exist ({said})")
    if STOLEN in condition:
        return HubUnavailableError(
            f"{partition} is held by another receiver in consumer group "
            f"{group!r}. Read in a consumer group of your own, or stop that "
            f"receiver ({said})"
        )
    return HubUnavailableError(f"{partition} cannot be read: {said}")
