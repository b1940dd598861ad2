# Not derived: edit this file and its async twin together.
"""A hub as Arrow batches, for pandas, Polars, DuckDB and other Arrow consumers; without Spark.

    with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        for batch in batches:
            work(batch)
            batches.commit()

The columns are `batches.schema`, those of the Spark source. Needs the extra `arrow`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.arrow.plan import DEFAULT_SETTINGS, Reading
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.read_plan import Missing, Where
from eventhub_checkpoints.records import Scope

try:
    import pyarrow as pa

    from eventhub_checkpoints.receive.arrow._sync.batches import HubBatches
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

    Nothing is requested or received before the first batch is requested. The ranges are fixed at
    that moment: reading ends there, even if more events arrive meanwhile. To read those, call it
    again; with a store it continues after the committed positions.

    Args:
        hub: a connection string, or a `HubAddress` for anything else that the official client
            accepts, such as a credential of azure-identity.
        scope: the scope of the checkpoints. With a connection string also the consumer group,
            and the hub if the string names none. Default: the hub's own names, and `$Default`.
        store: where the checkpoints are: a store of this kind, whose tables exist, or what
            `open_store` accepts, which is then closed with the batches. Default: none.
        partition_ids: default: all partitions of the hub.
        start: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a datetime
            with a zone, the sequence number of the first event to read, an `EventPosition`, or a
            dict of these by partition id. From `"latest"` nothing is read, and a commit saves
            that end.
        until: the first event of each partition that is *not* read, in the same forms.
        partitions_at_once: how many partitions are read concurrently, each over a separate
            connection. Memory use is that of as many tasks, see `ReadSettings.prefetch`, plus
            one batch for each.
        settings: how each partition is read. `fail_on_data_loss=False` continues after a warning
            where events have expired.
        missing: `"error"` refuses a partition that has had events and has no checkpoint, which may
            be a misspelt `scope`. By default it begins at `start`; where the store has no
            checkpoint of the scope at all, a warning is logged.

    Raises:
        ConfigurationError: an argument is unusable. No message shows a connection string.
    """
    reading = Reading.checked(
        hub, scope, partition_ids, start, until, partitions_at_once, settings, missing
    )
    return Batches(reading, store)


class Batches(HubBatches):
    """Batches of a hub, each from one partition; the batches of a partition come in order.

    An iterator that several threads may share, and an Arrow stream: `pyarrow.table(batches)`,
    `polars.DataFrame(batches)` and DuckDB queries accept it directly. It can be read once.

    Attributes:
        schema: the nine columns.
    """

    def to_reader(self) -> pa.RecordBatchReader:
        """Return all remaining batches as an Arrow reader; they are received as it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export an Arrow stream, for libraries that use the Arrow C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)
