"""An event hub as Arrow batches, for pandas, Polars, DuckDB and other consumers, without Spark.

    with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        for batch in batches:
            work(batch)
            batches.commit()

The schema is `batches.schema`: the columns of the Spark source. Requires the extra `arrow`.
"""

from eventhub_checkpoints.consume._sync.batches import ConsumedBatches, consume_batches
from eventhub_checkpoints.consume._sync.client import BatchConsumerClient
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow._sync.batches import Batches, read_batches
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
