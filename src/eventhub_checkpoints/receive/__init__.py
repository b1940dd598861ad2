"""Receiving: a range of one partition as Arrow batches, whatever the transport.

`read_range(address, OffsetRange("0", 100, 200))` yields exactly these events. It lives in
`eventhub_checkpoints.receive.batches`, which needs the extra `arrow` (pyarrow). The names of this
package, with which a reader chooses a range, need nothing more.

- `address`: what a transport offers; `amqp` and `kafka` are the transports. `credentials`: by name.
- `hub`: queries about a hub and its partitions. `position`: start and end in a partition.
- `ranges`: what to read and how. `read_plan`: from positions and checkpoints to ranges that the hub
  still has.
- `columns`: the columns of received events, each declared once. `reader`: the events of a range.
  `batches`: a range, or several at once, as Arrow batches.
- `arrow`: a whole hub, see `eventhub_checkpoints.arrow`.
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
