"""Events that a reader wants and a hub does not have."""

from collections.abc import Iterable

from eventhub_checkpoints.errors import DataLossError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.properties import PartitionProperties

GO_ON = "failOnDataLoss=false (without Spark ReadSettings(fail_on_data_loss=False))"


def expired(address: Address, wanted: int, found: PartitionProperties) -> DataLossError:
    """The wanted event was dropped by the hub's retention."""
    return DataLossError(
        found.partition_id,
        wanted,
        found.first_sequence_number,
        f"partition {found.partition_id} of {address}: sequence number {wanted} has expired; the "
        f"first retained is {found.first_sequence_number}, so "
        f"{found.first_sequence_number - wanted} events are lost. Start from 'earliest', or set "
        f"{GO_ON} to go on with what is left",
    )


def ahead_of_end(address: Address, wanted: int, found: PartitionProperties) -> DataLossError:
    """The wanted position lies behind the hub's last event: the hub was probably re-created."""
    return DataLossError(
        found.partition_id,
        wanted,
        found.first_sequence_number,
        f"partition {found.partition_id} of {address}: sequence number {wanted} lies behind the "
        f"end of the partition, whose next event gets {found.next_sequence_number}. Was the hub "
        "deleted and created again? Then its checkpoints belong to the old one: reset them, start "
        f"from 'earliest', or set {GO_ON} to read the new one from its first event. A range or "
        "position of yours may be of another hub",
    )


def partition_gone(
    address: Address, partition_id: str, wanted: int, found: Iterable[str]
) -> DataLossError:
    """The hub has no such partition any more: it was created again with fewer."""
    return DataLossError(
        partition_id,
        wanted,
        0,
        f"{address} has no partition {partition_id} any more, it has {', '.join(found)}. Was the "
        "hub deleted and created again? Then its checkpoints belong to the old one: reset them, "
        f"or set {GO_ON} to go on with the partitions that are there",
    )
