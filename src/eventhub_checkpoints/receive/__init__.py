"""One small seam: a range of one partition as Arrow batches.

`read_range(address, OffsetRange("0", 100, 200))` gives exactly these events, whatever way they
are received. It lives in `eventhub_checkpoints.receive.batches`, which needs the extra `arrow`
(pyarrow). What a reader must know to choose a range stands here and needs nothing more.

- `address`: a hub, for any transport; `amqp` and `kafka` are the transports. `credentials`: by
  name.
- `hub`: what a hub and its partitions hold. `position`: a place in a partition.
- `ranges`: what to read and how. `read_plan`: from positions and checkpoints to ranges that the hub
  still has.
- `stream`: one partition's events. `reader`, `batches`, `columns`: a range as Arrow batches.
- `parallel_reader`: several ranges at once. `arrow`: `eventhub_checkpoints.arrow`.
"""

from eventhub_checkpoints.errors import DataLossError, HubUnavailableError
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.hub import first_event, list_partitions, partition_properties
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
