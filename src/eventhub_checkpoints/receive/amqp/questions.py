"""What the official client answers about a hub."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints.errors import ConfigurationError, HubUnavailableError
from eventhub_checkpoints.receive.properties import PartitionProperties

NOT_FOUND, NO_CONNECTION = "not-found", "socket-error"
"""The client's conditions."""


@contextmanager
def hub_named(namespace: str, hub: str) -> Iterator[None]:
    """Say which hub is missing, or which host: the client says "404", or what failed, and no name.

    Raises:
        ConfigurationError: the namespace has no such hub.
        HubUnavailableError: no connection could be made.
    """
    try:
        yield
    except EventHubError as error:
        if NO_CONNECTION in str(error.error):
            raise HubUnavailableError(
                f"{namespace}, where event hub {hub!r} should be, cannot be reached. Is the name "
                f"right, and the way there open? {error}"
            ) from error
        if NOT_FOUND in str(error.error):
            raise ConfigurationError(f"{namespace} has no event hub {hub!r}") from error
        raise


def read_properties(partition_id: str, answer: Mapping[str, object]) -> PartitionProperties:
    """The client's answer, with an empty partition's numbers put straight.

    A partition that never held an event has -1 as its last number; one whose events have all
    expired still has a last number, and nothing before the next one can be read.
    """
    last, begin = answer["last_enqueued_sequence_number"], answer["beginning_sequence_number"]
    enqueued = answer["last_enqueued_time_utc"]
    assert isinstance(last, int)
    assert isinstance(begin, int)
    assert isinstance(enqueued, datetime)
    following = last + 1
    return PartitionProperties(
        partition_id,
        following if answer["is_empty"] else max(begin, 0),
        following,
        str(answer["last_enqueued_offset"]),
        enqueued if enqueued.tzinfo else enqueued.replace(tzinfo=UTC),
    )
