# Not derived: edit this file and its async twin together.
"""A hub as Arrow batches, for pandas, Polars, DuckDB and whatever else takes them; without Spark.

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
    """Read a hub from where the checkpoints say, or `start`, until where it ends now.

    Nothing is asked and nothing received before the first batch is asked for. What is read is
    decided then, once: it ends, also where more events come meanwhile. Whoever wants these calls
    it again; with a store that goes on behind what was committed.

    Args:
        hub: a connection string, or a `HubAddress` for anything else that the official client
            can be told, such as a credential of azure-identity.
        scope: whose checkpoints. With a connection string also the consumer group to read in,
            and the hub where it names none. Default: the hub's own names, and `$Default`.
        store: where the checkpoints are: a store of this kind, whose tables exist, or what
            `open_store` takes, which is then closed with the batches. Default: none.
        partition_ids: default: all that the hub has.
        start: where a partition without a checkpoint begins: `"earliest"`, `"latest"`, a datetime
            with a zone, the sequence number of the first event to read, an `EventPosition`, or a
            dict of these by partition id. From `"latest"` nothing is read, and a commit saves
            that end.
        until: the first event of each partition that is *not* read, in the same forms.
        partitions_at_once: how many partitions are read side by side, each over a connection of
            its own. Memory is that of as many tasks of `ReadSettings.prefetch`, and a batch more
            for each.
        settings: how each partition is read. `fail_on_data_loss=False` goes on after a warning
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
    """The batches of a hub, each of one partition; those of a partition come in its order.

    An iterator that several threads may share, and an Arrow stream: `pyarrow.table(batches)`,
    `polars.DataFrame(batches)` and a query of DuckDB take it as it is. It can be read once.

    Attributes:
        schema: the nine columns.
    """

    def to_reader(self) -> pa.RecordBatchReader:
        """All batches that follow, as Arrow's own reader: they are received as it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What other libraries call that take an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)
