"""Publisher of a streaming query's committed progress to the consumers' checkpoint store.

The authoritative position is the end offset that Spark has committed. An observation only adds the
offset, and only if it is of the very same event.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark.given import checked_scope
from eventhub_checkpoints.spark.progress.query_checkpoint import (
    checkpoint_files,
    read_spark_checkpoint,
)
from eventhub_checkpoints.spark.publishing.following import Following
from eventhub_checkpoints.spark.publishing.outbox import (
    ForwardWriter,
    LastEvent,
    Outbox,
    PublisherStats,
    opened,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOGGER = logging.getLogger(__name__)

PARTITIONS = 32
"""Maximum number of partitions of a hub in the Standard tier."""


class CheckpointPublisher:
    """Publisher of a streaming query's committed progress to a checkpoint store.

    Whatever source reads the hub (this package's, Kafka's, the JVM connector), a consumer with
    the same store then resumes after the last event that Spark has committed, and tools that
    compute the lag see it. A background thread writes to the store; its errors never stop a
    query, and are raised by `flush`.

        with CheckpointPublisher("sqlite:///positions.db", scope) as publisher:
            publisher.catch_up(location)
            publisher.attach(spark)
            query = publisher.observe(events).writeStream.option("checkpointLocation", location)...
            query.awaitTermination()

    A checkpoint is written after Spark's own, so a crash can leave the store behind, never ahead;
    `catch_up` brings it up to date at the next start. A checkpoint never moves back: a rewound
    query is not published until it passes the stored position. Start the query at the store's
    checkpoints: the progress of a query that starts at `latest` implies that all earlier events
    are processed.

    Args:
        store_or_url: a synchronous store that nothing else uses; or the URL of one, which is
            opened here and closed by `close`.
        scope: scope of the checkpoints; `eventhub_name` selects the source of the query.
        query_name: name or id of the query, if several of a session read this hub.
        source: index of the query's source, from 0, if several read this hub.

    Raises:
        ConfigurationError: an argument is unusable, or the store is asynchronous.
    """

    def __init__(
        self,
        store_or_url: CheckpointStore | str | Mapping[str, Any],
        scope: Scope,
        *,
        query_name: str | None = None,
        source: int | None = None,
    ) -> None:
        self._scope = Scope.checked(*checked_scope(scope))
        self._source = source
        self._store, self._is_own = opened(store_or_url)
        self._writer = ForwardWriter(self._store, self._scope)
        self._outbox = Outbox(self._writer.write, self._scope)
        self._following = Following(
            scope.eventhub_name, self._outbox.put, query_name=query_name, source=source
        )
        self._is_closed = False

    def attach(self, spark: "SparkSession") -> Self:
        """Publish the progress of the session's queries, running and future.

        Args:
            spark: a session of classic Spark, or of Spark Connect from 4.0 on.

        Raises:
            ConfigurationError: the publisher is attached already, or closed.
        """
        if self._is_closed:
            raise ConfigurationError("the publisher is closed; make another one")
        self._following.attach(spark)
        return self

    def observe(self, frame: "DataFrame", partitions: int = PARTITIONS) -> "DataFrame":
        """Return the same rows, with an observation of the newest offset of each partition.

        A checkpoint without an offset is complete for every consumer that uses this package's
        stores. With it, older tools can read the checkpoint too, and the service finds the position
        faster.

        Args:
            frame: the output of the source, before any filter. Its rows have the columns of the
                connector; rows of Kafka's source have no offset to observe.
            partitions: number of partitions of the hub. Each costs about 0.1 microseconds per
                event; if the hub has more partitions, some checkpoints will lack the offset.

        Raises:
            ConfigurationError: the columns do not exist.
        """
        return self._following.observe(frame, partitions)

    def catch_up(
        self, checkpoint_location: str | Path, spark: "SparkSession | None" = None
    ) -> Mapping[str, int]:
        """Publish what a query has committed before it was stopped or killed.

        Args:
            checkpoint_location: of the query. An empty or missing folder is that of a query that
                has committed nothing.
            spark: a classic session, if Spark's Hadoop client has to read the folder.

        Returns:
            The sequence numbers of the last committed events, by partition id.

        Raises:
            ConfigurationError: the folder is not a checkpoint of a query that reads this hub.
        """
        if not checkpoint_files(checkpoint_location, spark).names("."):
            return {}
        found = read_spark_checkpoint(
            checkpoint_location, self._scope.eventhub_name, spark, source=self._source
        )
        self._outbox.put({one: LastEvent(number) for one, number in found.positions.items()})
        return found.positions

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until everything that Spark has committed by now is in the store.

        Call it after `awaitTermination()` or `stop()`, because Spark reports a batch some time
        later. As the first line of a `foreachBatch` function it makes each batch wait until the
        previous one is in the store. Then a crash duplicates at most one batch, whether the query
        resumes from Spark's checkpoint or, if that is lost, from the store.

        Raises:
            ConfigurationError: the progress was ambiguous, and nothing was published since.
            StoreUnavailableError: not everything is stored after `timeout` (s).
            StoreError: the store refuses a checkpoint.
        """
        deadline = time.monotonic() + timeout
        is_told = self._following.collect(timeout)
        if self._following.problem is not None:
            raise self._following.problem
        self._outbox.flush(max(0.0, deadline - time.monotonic()))
        if not is_told:
            raise StoreUnavailableError(
                f"Spark has not told the end of a query within {timeout:g} s; its last progress "
                f"may not be in the store of {self._scope} yet"
            )

    def close(self, timeout: float = 30.0) -> None:
        """Flush, detach from the session, and close the store if it was opened here.

        Raises:
            CheckpointStoreError: as `flush`; everything is closed nevertheless.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.flush(timeout)
        finally:
            self._following.detach()
            self._outbox.close(timeout)
            if self._is_own:
                self._store.close()

    def stats(self) -> PublisherStats:
        """Return the statistics up to now."""
        counters = self._writer.counters
        return PublisherStats(
            published=counters["published"],
            with_offset=counters["with_offset"],
            stale=counters["stale"],
            failures=self._outbox.failures,
            waiting={one: last.sequence_number for one, last in self._outbox.waiting.items()},
            stored=self._writer.stored or {},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except CheckpointStoreError as failure:
            if error is None:
                raise
            # An error of the block takes precedence over one of `close`.
            _LOGGER.warning("%s", failure)
