"""An event hub as Arrow batches, for asyncio; see `eventhub_checkpoints.arrow`.

    async with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        async for batch in batches:
            await work(batch)
            await batches.commit()

Receiving and decoding run in threads, up to `partitions_at_once` of them, and never block the event
loop. A task that waits for a batch can be cancelled at any time without losing a batch. Arrow's own
readers are synchronous, so only the synchronous class has `to_reader`; both have `to_table`.
"""

from eventhub_checkpoints.consume._async.batches import ConsumedBatches, consume_batches
from eventhub_checkpoints.consume._async.client import BatchConsumerClient
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow._async.batches import Batches, read_batches
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.records import Scope

__all__ = [
    "BatchConsumerClient",
    "Batches",
    "ConsumedBatches",
    "EventPosition",
    "HubAddress",
    "ReadSettings",
    "Scope",
    "consume_batches",
    "read_batches",
]

for _public in (BatchConsumerClient, Batches, ConsumedBatches, consume_batches, read_batches):
    _public.__module__ = __name__
