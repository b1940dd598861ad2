"""Receivers and questions whose errors are those of this package."""

from collections.abc import Iterator
from contextlib import contextmanager

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client_errors import NOT_FOUND, OUT_OF_RANGE, STOLEN, explanation
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.stream import Stream, StreamWrapper


def is_final(error: Exception) -> bool:
    """Whether a receiver that was refused for this reason is refused again at once."""
    finals = (NOT_FOUND, STOLEN, OUT_OF_RANGE)
    return isinstance(error, EventHubError) and str(error.error).endswith(finals)


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
        raise explanation(error, address.scope(), partition_id) from error


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
