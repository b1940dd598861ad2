"""The official client's errors as errors of this package: what was refused, where, what to do.

The client names neither hub nor partition, and a wrong key is `client-error` to it.

Source: azure-eventhub 5.15.1, `exceptions.py` and `_transport/_pyamqp_transport.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from azure.eventhub.exceptions import AuthenticationError, EventHubError

from eventhub_checkpoints._decoder.columns import Columns
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    HubUnavailableError,
)
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.stream import Stream, StreamWrapper

NOT_FOUND, STOLEN, NO_CONNECTION = "not-found", "link:stolen", "socket-error"
UNAUTHORIZED, OUT_OF_RANGE = "unauthorized-access", "argument-out-of-range"
"""The client's conditions."""


def is_final(error: Exception) -> bool:
    """Whether a receiver that was refused for this reason is refused again at once."""
    finals = (NOT_FOUND, STOLEN, OUT_OF_RANGE)
    return isinstance(error, EventHubError) and str(error.error).endswith(finals)


def reason(error: Exception) -> str:
    """The client's description of an error, without the lines that repeat it."""
    lines = [line.strip() for line in str(error).splitlines()]
    ends = (at for at, line in enumerate(lines) if line.startswith("Error"))
    return ", ".join(filter(None, lines[: next(ends, None)])) or type(error).__name__


@contextmanager
def explained(address: Address, partition_id: str | None = None) -> Iterator[None]:
    """Raise errors of this package where the client raises its own.

    Args:
        address: the hub that the client is asked about.
        partition_id: the partition that it receives from; None: it asks a question.

    Raises:
        ConfigurationError: the hub or the consumer group does not exist, or the key, the
            signature or the credential is refused.
        HubUnavailableError: anything else that made the client give up.
    """
    try:
        yield
    except EventHubError as error:
        raise explanation(error, address, partition_id) from error


def explanation(
    error: EventHubError, address: Address, partition_id: str | None
) -> CheckpointStoreError:
    """The error of this package that stands for one of the client's."""
    namespace, hub = address.fully_qualified_namespace, address.eventhub_name
    condition, said = str(error.error), reason(error)
    if isinstance(error, AuthenticationError) or UNAUTHORIZED in condition:
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
    partition = f"partition {partition_id} of {address}"
    if NOT_FOUND in condition:
        return ConfigurationError(
            f"{partition} cannot be read: {address} has no consumer group "
            f"{address.consumer_group!r}, or the hub was deleted ({said})"
        )
    if OUT_OF_RANGE in condition:
        return ConfigurationError(f"{partition} does not exist ({said})")
    if STOLEN in condition:
        return HubUnavailableError(
            f"{partition} is held by another receiver in consumer group "
            f"{address.consumer_group!r}. Read in a consumer group of your own, or stop that "
            f"receiver ({said})"
        )
    return HubUnavailableError(f"{partition} cannot be read: {said}")


class ExplainedStream(StreamWrapper):
    """A stream of the client's whose errors are those of this package.

    Args:
        stream: closed with this one.
        address: the hub.
        partition_id: which partition.
    """

    def __init__(self, stream: Stream, address: Address, partition_id: str) -> None:
        super().__init__(stream)
        self._address, self._partition_id = address, partition_id

    def next(self, timeout: float) -> Columns | None:
        with explained(self._address, self._partition_id):
            return self._stream.next(timeout)
