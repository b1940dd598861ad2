"""A hub as Arrow batches, asynchronously; see `eventhub_checkpoints.arrow`.

    async with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        async for batch in batches:
            await work(batch)
            await batches.commit()

Receiving and decoding happen in up to `partitions_at_once` threads, and never block the event
loop. A task that waits for a batch can be cancelled at any time: no batch is lost by it. Arrow's
own readers are synchronous, so `to_reader` exists only there; `to_table` exists in both.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow.plan import DEFAULT_SETTINGS, Reading
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.read_plan import Missing, Where
from eventhub_checkpoints.records import Scope

try:
    from eventhub_checkpoints.receive.arrow._async.batches import HubBatches
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

__all__ = ["Batches", "EventPosition", "HubAddress", "ReadSettings", "Scope", "read_batches"]


def read_batches(
    hub: str | Address,
    scope: Scope | None = None,
    store: CheckpointStore | str | Mapping[str, Any] | None = None,
    *,
    partition_ids: Iterable[str | int] | None = None,
    start: Where | Mapping[str, Where] = "earliest",
    until: Where | Mapping[str, Where] = "latest",
    partitions_at_once: int = 4,
    settings: ReadSettings = DEFAULT_SETTINGS,
    missing: Missing = "start",
) -> "Batches":
    """Read a hub from its checkpoints, or `start`, up to its current end.

    As `eventhub_checkpoints.arrow.read_batches`, with a store of the asynchronous kind.
    """
    reading = Reading.checked(
        hub, scope, partition_ids, start, until, partitions_at_once, settings, missing
    )
    return Batches(reading, store)


class Batches(HubBatches):
    """Batches of a hub, each from one partition; the batches of a partition come in order.

    An asynchronous iterator that several tasks of one loop may share. It can be read once.

    Attributes:
        schema: the nine columns.
    """
