"""One small seam: a range of one partition as Arrow batches.

`read_range(address, PartitionRange("0", 100, 200))` gives exactly these events, whatever way
they are received. Beside it stands what a reader must know to choose a range:
`partition_properties`. The Arrow half needs the extra `spark` (pyarrow).
"""

from eventhub_checkpoints.errors import DataLossError, HubUnavailableError
from eventhub_checkpoints.receive.address import HubAddress
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.hub import (
    PartitionProperties,
    first_event,
    list_partitions,
    partition_properties,
)
from eventhub_checkpoints.receive.ranges import PartitionRange, ReadSettings

__all__ = [
    "DataLossError",
    "HubAddress",
    "HubUnavailableError",
    "PartitionProperties",
    "PartitionRange",
    "ReadSettings",
    "first_event",
    "list_partitions",
    "partition_properties",
    "read_range",
]
