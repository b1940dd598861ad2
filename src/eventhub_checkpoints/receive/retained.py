"""A range that is wanted, held against what a partition has."""

import logging

from eventhub_checkpoints.errors import DataLossError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.loss import ahead_of_end, expired
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings

_LOGGER = logging.getLogger(__name__)


def retained(
    address: Address, settings: ReadSettings, found: PartitionProperties, start: int, end: int
) -> OffsetRange:
    """The range, held against what the partition has.

    With `failOnDataLoss=false` a start that the hub does not have moves to the first retained
    event, and an end behind the last one to the last one, each with a warning.

    Raises:
        DataLossError: the hub does not have the range, and that is a failure.
        ConfigurationError: the range ends before it begins.
    """
    first, following = found.first_sequence_number, found.next_sequence_number
    if start < first and start < end:
        report(expired(address, start, found), settings)
        start, end = first, max(first, end)
    elif start > following:
        report(ahead_of_end(address, start, found), settings)
        start = first
    if end > following:
        report(ahead_of_end(address, end, found), settings)
        end = following
    return OffsetRange(found.partition_id, start, end)


def report(loss: DataLossError, settings: ReadSettings) -> None:
    """Fail, or say it and go on, as the job has chosen."""
    if settings.fail_on_data_loss:
        raise loss
    _LOGGER.warning("%s", loss)
