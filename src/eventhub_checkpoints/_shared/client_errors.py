"""The official client's errors as errors of this package: what was refused, where, what to do.

The client names neither hub nor partition, and a wrong key is `client-error` to it.

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
"""The client's conditions."""


def reason(error: Exception) -> str:
    """The client's description of an error, without the lines that repeat it."""
    lines = [line.strip() for line in str(error).splitlines()]
    ends = (at for at, line in enumerate(lines) if line.startswith("Error"))
    return ", ".join(filter(None, lines[: next(ends, None)])) or type(error).__name__


def explanation(
    error: Exception, scope: Scope, partition_id: str | None = None
) -> CheckpointStoreError:
    """Return the error of this package that stands for one of the client's.

    Args:
        error: an `EventHubError`.
        scope: the hub that was asked, and the consumer group that it is read in.
        partition_id: the partition that was to be read; None: it was asked a question.
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
