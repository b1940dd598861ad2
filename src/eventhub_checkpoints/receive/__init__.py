"""One small seam: a range of one partition as Arrow batches.

`read_range(address, OffsetRange("0", 100, 200))` gives exactly these events, whatever way they
are received. It lives in `eventhub_checkpoints.receive.batches`, which needs the extra `arrow`
(pyarrow). What a reader must know to choose a range stands here and needs nothing more.

- `address`: a hub, for any transport; `amqp` and `kafka` are the transports. `credentials`: by
  name.
- `hub`, `properties`: what a hub and its partitions hold. `position`: a place in a partition.
- `ranges`: what to read and how. `wanted`, `resolving`, `retained`, `loss`, `checkpoints`: from
  what a user wants to ranges of sequence numbers, compared with what the hub still has.
- `stream`, `stoppable`: one partition's events. `reader`, `batches`, `columns`: a range as Arrow
  batches.
- `side_by_side`: several ranges at once. `arrow`: `read_batches`.
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
