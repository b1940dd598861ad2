"""A hub as Arrow batches, for pandas, Polars, DuckDB and whatever else takes them; without Spark.

    with read_batches(CONNECTION_STRING, store="sqlite:///checkpoints.db") as batches:
        for batch in batches:
            work(batch)
            batches.commit()

The columns are `batches.schema`, those of the Spark source. Needs the extra `arrow`.
"""

import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._arrow_reading import (
    DEFAULT_SETTINGS,
    NO_STORE,
    Positions,
    Reading,
    checked_store,
    checkpoint,
    stale_count,
)
from eventhub_checkpoints.errors import (
    ConfigurationError,
    MissingDriverError,
    StaleCheckpointError,
)
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import ReadSettings
from eventhub_checkpoints.receive.wanted import Where
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store

try:
    import pyarrow as pa

    from eventhub_checkpoints.receive.columns import SCHEMA
    from eventhub_checkpoints.receive.side_by_side import SideBySide
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

__all__ = ["Batches", "EventPosition", "HubAddress", "ReadSettings", "Scope", "read_batches"]

CLOSE_TIMEOUT = 5.0
"""Seconds that `close` waits for the threads; a hub that hangs keeps no program from ending."""


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

    Raises:
        ConfigurationError: an argument is unusable. No message shows a connection string.
    """
    reading = Reading.checked(hub, scope, partition_ids, start, until, partitions_at_once, settings)
    if store is None:
        return Batches(reading, None, owns_store=False)
    if isinstance(store, str | Mapping):
        return Batches(reading, open_store(store), owns_store=True)
    return Batches(reading, checked_store(store, is_async=False), owns_store=False)


class Batches:
    """The batches of a hub, each of one partition; those of a partition come in its order.

    An iterator that several threads may share, and an Arrow stream: `pyarrow.table(batches)`,
    `polars.DataFrame(batches)` and a query of DuckDB take it as it is. It can be read once.

    Attributes:
        schema: the nine columns.
    """

    schema: pa.Schema = SCHEMA

    def __init__(self, reading: Reading, store: Any, *, owns_store: bool) -> None:
        self._reading = reading
        self._store = store
        self._owns_store = owns_store
        self._positions = Positions()
        self._opening = threading.Lock()
        self._source: SideBySide | None = None
        self._is_closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        """The next batch, of whichever partition comes first.

        Raises:
            ConfigurationError: there is no such hub or partition, or a range ends before it begins.
            DataLossError: events that are wanted are not in the hub.
            HubUnavailableError: the hub did not answer, or did not deliver what it holds.
            EventHubError: the client gave up after its own retries.
            StoreError: the checkpoints could not be read.
        """
        source = self._opened()
        batch = source.next() if source else None
        if batch is None:
            raise StopIteration
        self._positions.hand_out(batch)
        return batch

    def commit(self) -> dict[str, int]:
        """Save, for each partition, the position of the last batch that was handed out.

        It covers every batch that was handed out before it, the one in work included: commit when
        their results are safe. What is saved already costs nothing.

        Returns:
            The sequence numbers that were saved now, by partition id. One is missing where the
            store was told by another writer of a later position: it logs that, and keeps it.

        Raises:
            ConfigurationError: there is no store.
            StaleCheckpointError: such a partition, where the store has `on_stale="raise"`; all
                others are saved.
            StoreError: the store could not be written. What is not saved is tried again with the
                next commit.
        """
        if self._store is None:
            raise ConfigurationError(NO_STORE)
        saved: dict[str, int] = {}
        refused: StaleCheckpointError | None = None
        for partition, place in self._positions.unsettled().items():
            before = stale_count(self._store)
            try:
                self._store.update_checkpoint(checkpoint(self._reading.scope, partition, place))
            except StaleCheckpointError as error:
                refused = error
            else:
                if stale_count(self._store) == before:
                    saved[partition] = place.sequence_number
            self._positions.settled[partition] = place
        if refused:
            raise refused
        return saved

    def to_reader(self) -> pa.RecordBatchReader:
        """All batches that follow, as Arrow's own reader: they are received as it is read."""
        return pa.RecordBatchReader.from_batches(SCHEMA, self)

    def to_table(self) -> pa.Table:
        """All batches that follow, at once in memory."""
        return pa.Table.from_batches(self, SCHEMA)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What other libraries call that take an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Stop receiving, and close the store if it was opened here. Nothing is committed."""
        self._is_closed = True
        if self._source:
            self._source.stop()
            self._source.join(CLOSE_TIMEOUT)
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> SideBySide | None:
        with self._opening:
            if self._source is None and not self._is_closed:
                self._source = self._open()
                if self._is_closed:
                    # By somebody who did not wait for the hub's answers, and saw nothing to stop.
                    self._source.stop()
            return None if self._is_closed else self._source

    def _open(self) -> SideBySide:
        reading = self._reading
        rows = self._store.list_checkpoints(*reading.scope) if self._store is not None else []
        stored = {row["partition_id"]: row for row in rows}
        plan = reading.wanted.plan(reading.address, stored, reading.settings)
        self._positions.handed_out.update(plan.passed)
        at_once = reading.partitions_at_once
        source = SideBySide(reading.address, plan.ranges, reading.settings, at_once)
        # Whoever leaves a loop early and forgets to close leaves no thread behind.
        weakref.finalize(self, source.stop)
        return source
