"""A hub as Arrow batches, asynchronously; see `eventhub_checkpoints.arrow`.

    async with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        async for batch in batches:
            await work(batch)
            await batches.commit()

Receiving and decoding happen in threads, as many as `partitions_at_once`, and never block the
event loop. A task that waits for a batch can be cancelled at any time: no batch is lost by it.
Arrow's own readers are synchronous, so `to_reader` is only there; `to_table` is in both.
"""

from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow._async.read_batches import Batches, read_batches
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.records import Scope

__all__ = ["Batches", "EventPosition", "HubAddress", "ReadSettings", "Scope", "read_batches"]

for _public in (Batches, read_batches):
    _public.__module__ = __name__
