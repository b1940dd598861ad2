"""Results and positions of a streaming query in one database transaction.

A batch that Spark runs again finds its positions stored, and is left out. What decides is the
sequence number, never Spark's batch id: that one begins at 0 again with a new checkpoint.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from eventhub_checkpoints._shared._sync.compat import bounded
from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark.exactly_once.commit import commit, may_pass, open_sql_store
from eventhub_checkpoints.spark.exactly_once.fences import (
    ByRange,
    ByRow,
    Fence,
    Plan,
    Ranges,
    RowsAsTheyAre,
)
from eventhub_checkpoints.spark.exactly_once.staging import MAX_ROWS, Collected, Results
from eventhub_checkpoints.spark.given import checked_scope, require_kind
from eventhub_checkpoints.spark.positions.from_store import starting_positions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eventhub_checkpoints.spark.exactly_once.staging import StagingTable
    from eventhub_checkpoints.spark.positions.from_store import Missing
    from eventhub_checkpoints.spark.positions.hub_positions import StartingPositions
    from eventhub_checkpoints.spark.positions.hubs import Hub
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

_LOGGER = logging.getLogger(__name__)

TIMEOUT = 600.0


class ExactlyOnce:
    """What `foreachBatch` calls: each event's results are in the database once, whatever fails.

    ```python
    def write(connection, rows):
        connection.execute(insert(readings), [row.asDict() for row in rows])

    stream.writeStream.foreachBatch(ExactlyOnce(url, scope, write)).start()
    ```

    In one transaction the results are written and the positions stored, as checkpoints of
    `SqlCheckpointStore` that every consumer and tool reads. They decide what is new; Spark's own
    checkpoint may be behind, lost or begun anew. So no event's results are missing or doubled
    after a crash at any point, nor while two queries run on one scope, if each query reads one
    hub, from `starting_positions` on. There are two ways to tell what is new:

    *By row* (default): rows at or below their partition's position are left out. The batch must
    keep the columns `partition`, `sequenceNumber` and `offset` (of Kafka: `partition`, `offset`).
    Rows must come in the batch of their event: a join or window that gives them out later would
    lose them here. **Spark's checkpoint deleted**: every guarantee holds, also where the new
    query begins earlier than the position. One that begins later skips what is between, unseen.

    *By range* (`ranges=`), for results without positions, such as a stateful aggregation: the
    batch is written if it begins right after what is stored, left out if it ends there or
    before, and refused (`StaleCheckpointError`) where it overlaps or skips. **Spark's checkpoint
    deleted**: no range is taken twice or skipped, but the query's state is lost. What it adds
    to the database stays exact; totals that it writes over start from 0 again.

    A hub that was created again counts from 0 again, and its events would seem stored: delete
    the positions of the old one first (`delete_scope`). After a loss of events that you accept,
    write the position that *by range* expects, with `update_checkpoint(..., force=True)`.

    With Spark Connect this object is pickled and runs on the server: give a URL that the server
    can open, and a `write` that carries no connection, session or open file. Executors never
    use the transaction; only with `staging=` do they open the URL.

    Args:
        target: `sqlite:///FILE` or `postgresql://..` as `SqlCheckpointStore` takes it, a
            SQLAlchemy engine, or such a store. Results go to the same database.
        scope: whose positions.
        write: called with SQLAlchemy's connection and the new rows, never with none. It neither
            commits nor rolls back, and it may be called again for the same rows after its
            transaction was rolled back.
        transform: makes the results of one batch from a frame of its new rows, for example
            counts by device; what it returns needs no positions.
        ranges: by range instead of by row. The query's own `checkpointLocation`, from whose log
            the batch's range is read; or a callable with the frame and the batch id that gives
            `OffsetRange`s, such as `lambda frame, _: ranges_of(frame)` before a `transform` of
            rows that still have positions and lack none. Set
            `spark.sql.streaming.noDataMicroBatches.enabled` to false where a batch without input
            could have results.
        staging: a `StagingTable` for results that are too many for the driver; `write` is then
            given its `StagedRows`, to be read with `INSERT .. SELECT .. FROM {rows}`.
        max_rows: results of one batch that the driver takes into its memory.
        timeout: seconds for one transaction, and for trying again while the database is away.

    Raises:
        ConfigurationError: an argument cannot work.
        MissingDriverError: the database's driver is not installed.
    """

    def __init__(
        self,
        target: Any,
        scope: Scope,
        write: "Callable[[Connection, Any], object]",
        *,
        transform: "Callable[[DataFrame], DataFrame] | None" = None,
        ranges: Ranges | None = None,
        staging: "StagingTable | None" = None,
        max_rows: int = MAX_ROWS,
        timeout: float = TIMEOUT,
    ) -> None:
        checked_scope(scope)
        require_kind("write", write, callable(write), "what is called with connection and rows")
        if staging is not None and not isinstance(target, str):
            raise ConfigurationError("staging= needs the database's URL, which executors open")
        if not (max_rows >= 1 and timeout > 0):
            raise ConfigurationError(
                f"max_rows is {max_rows} and timeout {timeout}; expected at least one row, and "
                "more than 0 seconds"
            )
        self._target, self._scope, self._write = target, scope, write
        self._transform, self._staging = transform, staging
        self._max_rows, self._timeout = max_rows, timeout
        self._store = open_sql_store(target)
        self._fence: Fence = RowsAsTheyAre(scope, max_rows)
        if ranges is not None:
            self._fence = ByRange(scope, self._results, ranges)
        elif transform is not None or staging is not None:
            self._fence = ByRow(scope, self._results)

    def __repr__(self) -> str:
        return f"ExactlyOnce({self._store!r}, {self._scope})"

    def starting_positions(
        self,
        partition_ids: Iterable[str | int] | None = None,
        missing: "Missing" = "earliest",
        *,
        hub: "Hub | None" = None,
    ) -> "StartingPositions":
        """Where a new query begins; else as the function `starting_positions`."""
        return starting_positions(self._store, self._scope, partition_ids, missing, hub=hub)

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write what is new of a batch, in one transaction with its positions.

        Raises:
            StaleCheckpointError: by range, and the batch overlaps what is stored, or skips some.
            ConfigurationError: the batch has too many rows, or no positions.
            StoreError: the database refused, or did not answer in time.
        """
        if self._fence.reads_once:
            return self._until_done(batch, batch_id)
        # A second read would read the source again, and compute the query's state again.
        batch.persist()
        try:
            self._until_done(batch, batch_id)
        finally:
            batch.unpersist()

    def _until_done(self, batch: "DataFrame", batch_id: int) -> None:
        attempt, over = 0, 0.0
        while True:
            try:
                plan = self._plan(batch, batch_id)
                return None if plan is None else self._commit(plan)
            except Exception as error:
                over = over or time.monotonic() + self._timeout
                wait = pause(attempt, over - time.monotonic(), random.random())
                if wait is None or not may_pass(self._store, error):
                    raise
                _LOGGER.warning("batch %s of %s is tried again: %s", batch_id, self._scope, error)
            time.sleep(wait)
            attempt += 1

    def _plan(self, batch: "DataFrame", batch_id: int) -> Plan | None:
        """What to write now; None if nothing of the batch is new."""
        rows = self._store.list_checkpoints(*self._scope)
        stored = {row["partition_id"]: row["sequence_number"] for row in rows}
        unknown = [partition for partition, number in stored.items() if number is None]
        if unknown:
            raise ConfigurationError(
                f"the checkpoint of partition {', '.join(unknown)} of {self._scope} has no "
                "sequence number, so nothing can be compared with it; write it again with one"
            )
        return self._fence.plan(batch, batch_id, stored)

    def _commit(self, plan: Plan) -> None:
        bounded(self._timeout, commit, self._store, self._scope, plan, self._write)

    def _results(self, frame: "DataFrame", batch_id: int) -> Results:
        results = self._transform(frame) if self._transform is not None else frame
        if self._staging is not None:
            return self._staging.take(results, self._store, self._target, batch_id)
        return Collected.of(results, self._max_rows)

    def close(self) -> None:
        """Close the store, unless it was given."""
        if self._store is not self._target:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but the open store.

        Raises:
            ConfigurationError: it has a connection to somewhere, which cannot be sent.
        """
        if not isinstance(self._target, str):
            raise ConfigurationError(
                "with Spark Connect ExactlyOnce runs on the server: give the database's URL"
            )
        return {name: value for name, value in vars(self).items() if name != "_store"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._store = open_sql_store(self._target)
