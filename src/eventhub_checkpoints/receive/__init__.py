"""One small seam: a range of one partition as Arrow batches.

`read_range(address, OffsetRange("0", 100, 200))` gives exactly these events, whatever way they
are received. It lives in `eventhub_checkpoints.receive.batches`, which needs the extra `arrow`
(pyarrow). What a reader must know to choose a range stands here and needs nothing more.
"""

from eventhub_checkpoints.errors import DataLossError, HubUnavailableError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import first_event, list_partitions, partition_properties
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings

__all__ = [
    "Address",
    "DataLossError",
    "HubAddress",
    "HubUnavailableError",
    "OffsetRange",
    "PartitionProperties",
    "ReadSettings",
    "first_event",
    "list_partitions",
    "partition_properties",
]
