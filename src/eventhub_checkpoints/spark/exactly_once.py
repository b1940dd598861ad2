"""Exactly-once sink: results and positions in one database transaction.

A batch that Spark runs again finds its positions stored, and is skipped. This is decided by the
sequence number, never by Spark's batch id, which starts at 0 again with a new checkpoint.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from eventhub_checkpoints._shared import callables
from eventhub_checkpoints._shared._sync.compat import bounded
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.settings import is_count, require, require_seconds
from eventhub_checkpoints.errors import (
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark import new_rows
from eventhub_checkpoints.spark.checkpoint_positions import Missing, starting_positions
from eventhub_checkpoints.spark.hub import Hub
from eventhub_checkpoints.spark.positions import StartingPositions
from eventhub_checkpoints.spark.staging import (
    MAX_ROWS,
    Collected,
    Results,
    StagingTable,
    open_sql_store,
    transact,
)
from eventhub_checkpoints.spark.validation import checked_scope, column_names, require_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

log = logging.getLogger(__name__)

TIMEOUT = 600.0

Write = Callable[["Connection", Any], object]

TRANSIENT = ("OperationalError", "InterfaceError", "TimeoutError")
"""Transient errors of SQLAlchemy, such as a broken connection; a retry may succeed."""


def commit(
    store: "SqlCheckpointStore", scope: Scope, plan: new_rows.PlannedWrite, write: Write
) -> None:
    """Write positions and results, and commit; on an error neither is stored.

    The positions are written first, so that a batch that another query has overtaken is detected
    before its results are written.

    Raises:
        StoreUnavailableError: another query has moved the positions since the plan was made, or
            the database did not answer; a retry may succeed.
        ConfigurationError: `write` has ended the transaction.
    """

    def work(connection: "Connection") -> None:
        # Every query locks the rows in the same order, so two cannot deadlock. The writes below
        # compare the stored sequence numbers.
        store.read_in(connection, scope, [end.partition_id for end in plan.ends])
        for end in plan.ends:
            expected = plan.stored.get(end.partition_id)
            store.write_in(connection, end, expected_sequence_number=expected)
        # SQLAlchemy inserts one row of defaults for an empty list of rows.
        if len(plan.results):
            write(connection, plan.results.begin(connection))
            if not connection.in_transaction():
                raise ConfigurationError("write must not commit or roll back the transaction")
            plan.results.end(connection)

    try:
        transact(store, work)
    except StaleCheckpointError as stale:
        raise StoreUnavailableError(f"{scope}: another query has written first: {stale}") from stale


def may_succeed_later(store: "SqlCheckpointStore", error: Exception) -> bool:
    """Return whether the transaction may be retried; a retry is safe if the outcome is unknown."""
    if type(error).__name__ in TRANSIENT:
        error = store.database.map_error(error) or error
    return isinstance(error, StoreUnavailableError)


class ExactlyOnce:
    """Callable for `foreachBatch` that writes the results of each event exactly once.

    ```python
    def write(connection, rows):
        connection.execute(insert(readings), [row.asDict() for row in rows])

    stream.writeStream.foreachBatch(ExactlyOnce(url, scope, write)).start()
    ```

    One transaction writes the results and stores the positions, as checkpoints of
    `SqlCheckpointStore` that every consumer and tool can read. These positions decide what is new;
    Spark's own checkpoint may be behind, lost or started again. No event's results are missing or
    duplicated after a crash at any point, nor while two queries run on one scope, provided that
    each query reads one hub and starts at `starting_positions`. New events are selected in one of
    two ways:

    *By row* (default): rows at or below the position of their partition are skipped. The batch
    must keep the columns `partition`, `sequenceNumber` and `offset` (of Kafka: `partition`,
    `offset`). Rows must arrive in the batch of their event: rows that a join or window emits later
    are lost. **Spark's checkpoint deleted**: every guarantee holds, even if the new query starts
    before the stored position. A query that starts after it silently skips the events between.

    *By range* (`ranges=`), for results without positions, such as a stateful aggregation: the
    batch is written if it starts right after the stored position, skipped if it ends at or before
    that position, and refused (`StaleCheckpointError`) if it overlaps it or leaves a gap.
    **Spark's checkpoint deleted**: no range is processed twice or skipped, but the query's state
    is lost. Increments to the database stay exact; totals that the query overwrites restart at 0.

    The sequence numbers of a hub that was deleted and created again restart at 0, so its events
    would seem stored: delete the positions of the old hub first (`delete_scope`). After a loss of
    events that you accept, write the position that *by range* expects with
    `update_checkpoint(..., force=True)`.

    With Spark Connect this object is pickled and runs on the server: pass a URL that the server
    can open, and a `write` that holds no connection, session or open file. Executors never use the
    transaction; they open the URL only with `staging=`.

    Args:
        target: `sqlite:///FILE` or `postgresql://..` as `SqlCheckpointStore` takes it, a
            SQLAlchemy engine, or such a store. Results go to the same database.
        scope: scope of the positions.
        write: called with SQLAlchemy's connection and the new rows, never without rows. It must
            not commit or roll back, and may be called again with the same rows after its
            transaction was rolled back.
        transform: computes the results of one batch from a DataFrame of its new rows, for example
            counts by device; its result needs no positions.
        ranges: select by range instead of by row. Either the query's own `checkpointLocation`,
            whose log contains the range of the batch; or a callable that takes the DataFrame and
            the batch id and returns `OffsetRange`s, such as `lambda frame, _: ranges_of(frame)`
            before a `transform` of rows that all still have their positions. Set
            `spark.sql.streaming.noDataMicroBatches.enabled` to false if a batch without input
            could have results.
        staging: a `StagingTable` for results that are too large for the driver; `write` is then
            called with `StagedRows`, to be read with `INSERT .. SELECT .. FROM {rows}`.
        max_rows: maximum number of result rows of one batch in the driver's memory.
        timeout: seconds for one transaction, and for retries while the database is unavailable.

    Raises:
        ConfigurationError: an argument is unusable.
        MissingDriverError: the database's driver is not installed.
    """

    @with_checked_arguments
    def __init__(
        self,
        target: Any,
        scope: Scope,
        write: Write,
        *,
        transform: "Callable[[DataFrame], DataFrame] | None" = None,
        ranges: new_rows.Ranges | None = None,
        staging: StagingTable | None = None,
        max_rows: int = MAX_ROWS,
        timeout: float = TIMEOUT,
    ) -> None:
        checked_scope(scope)
        require_function("write", write, "a function of a connection and rows")
        if transform is not None:
            require_function("transform", transform, "a function of a DataFrame")
        if ranges is not None:
            new_rows.check_ranges(ranges)
        if staging is not None and not isinstance(target, str):
            raise ConfigurationError(
                "staging= needs the URL of the database, because executors connect to it"
            )
        require("max_rows", max_rows, is_count(max_rows), "a whole number of at least 1")
        require_seconds("timeout", timeout)
        self._target, self._scope, self._write = target, scope, write
        self._transform, self._staging = transform, staging
        self._max_rows, self._timeout = max_rows, timeout
        self._store = open_sql_store(target)
        self._ranges = ranges
        self._writes_rows = ranges is None and transform is None and staging is None

    def __repr__(self) -> str:
        return f"ExactlyOnce({self._store!r}, {self._scope})"

    def starting_positions(
        self,
        partition_ids: Iterable[str | int] | None = None,
        missing: Missing = "earliest",
        *,
        hub: Hub | None = None,
    ) -> StartingPositions:
        """Return where a new query begins; see the function `starting_positions`."""
        return starting_positions(self._store, self._scope, partition_ids, missing, hub=hub)

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write the new results of a batch in one transaction with its positions.

        Raises:
            StaleCheckpointError: by range, if the batch overlaps the stored position or leaves a
                gap.
            ConfigurationError: the batch has too many rows, or no positions.
            StoreError: the database refused the transaction, or did not answer in time.
        """
        if self._writes_rows:
            return self._until_done(batch, batch_id)
        # Without this, the second job would read the source and compute the state again.
        batch.persist()
        try:
            self._until_done(batch, batch_id)
        finally:
            batch.unpersist()

    def _until_done(self, batch: "DataFrame", batch_id: int) -> None:
        attempt, deadline = 0, 0.0
        while True:
            try:
                plan = self._plan(batch, batch_id)
                return None if plan is None else self._commit(plan)
            except Exception as error:
                deadline = deadline or time.monotonic() + self._timeout
                wait = pause(attempt, deadline - time.monotonic(), random.random())
                if wait is None or not may_succeed_later(self._store, error):
                    raise
                log.warning(
                    "batch %s of %s is retried: %s", batch_id, self._scope, described(error)
                )
            time.sleep(wait)
            attempt += 1

    def _plan(self, batch: "DataFrame", batch_id: int) -> new_rows.PlannedWrite | None:
        """Return what to write; None if nothing of the batch is new."""
        rows = self._store.list_checkpoints(*self._scope)
        stored = {row["partition_id"]: row["sequence_number"] for row in rows}
        if unknown := [partition for partition, number in stored.items() if number is None]:
            raise ConfigurationError(
                f"the checkpoint of partition {', '.join(unknown)} of {self._scope} has no "
                "sequence number to compare with; store a checkpoint with a sequence number"
            )
        if self._ranges is not None:
            ranges = new_rows.ranges_of_batch(self._ranges, self._scope, batch, batch_id)
            return new_rows.results_by_range(
                self._scope, stored, batch, batch_id, ranges, self._results
            )
        if self._writes_rows:
            return new_rows.rows_as_results(self._scope, stored, batch, self._max_rows)
        return new_rows.results_by_row(self._scope, stored, batch, batch_id, self._results)

    def _commit(self, plan: new_rows.PlannedWrite) -> None:
        write = partial(callables.run, self._write)
        bounded(self._timeout, commit, self._store, self._scope, plan, write)

    def _results(self, frame: "DataFrame", batch_id: int) -> Results:
        results = frame
        if self._transform is not None:
            results = self._transform(frame)
            column_names(results, "the result of transform")
        if self._staging is not None:
            return self._staging.take(results, self._store, self._target, batch_id)
        return Collected.of(results, self._max_rows)

    def close(self) -> None:
        """Close the store, unless the caller passed it in."""
        if self._store is not self._target:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the open store.

        Raises:
            ConfigurationError: the target is an engine or a store, which cannot be pickled.
        """
        if not isinstance(self._target, str):
            raise ConfigurationError(
                "with Spark Connect ExactlyOnce runs on the server: pass the database's URL"
            )
        return {name: value for name, value in vars(self).items() if name != "_store"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._store = open_sql_store(self._target)
