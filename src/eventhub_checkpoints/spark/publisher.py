"""Publisher of a streaming query's committed progress to the consumers' checkpoint store.

`QueryFollower` finds the positions, `BackgroundWriter` keeps the latest of each partition until it
is written, and `ForwardWriter` writes it unless the store is ahead.

A `CoalescingCheckpointStore` keeps the latest position of each partition as well, but cannot take
the place of the background writer:

- It assumes that each position is the latest, but a replayed or caught-up query reports lower ones.
- It writes partitions concurrently, but another maker's store may be limited to one thread.
- It gives up each write after a time limit, and logs each attempt.
- Its flush reports neither the error nor the partitions, which a caller here needs.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.deadline import backoff
from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import is_count, require, require_seconds, require_text
from eventhub_checkpoints._shared.wrapping import declares
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.offsets import BehindLatest
from eventhub_checkpoints.spark.query_checkpoint import checkpoint_files, read_spark_checkpoint
from eventhub_checkpoints.spark.query_follower import LastEvent, QueryFollower
from eventhub_checkpoints.spark.validation import checked_scope, has_sync_method

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

PARTITIONS = 32
"""Maximum number of partitions of a hub in the Standard tier."""


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """Statistics of a publisher.

    Attributes:
        published: checkpoints written.
        with_offset: those of them that have an offset.
        stale: positions not written because the store was ahead.
        failures: attempts that the store rejected or did not answer; they are retried.
        waiting: sequence numbers of the last committed events that are not in the store yet, by
            partition id.
        stored: sequence numbers that the store is known to hold, by partition id.
        behind_latest: how far the query was behind the end of the hub when it last reported its
            progress; None if its source does not report the end of the hub.
    """

    published: int
    with_offset: int
    stale: int
    failures: int
    waiting: Mapping[str, int]
    stored: Mapping[str, int]
    behind_latest: BehindLatest | None


class ForwardWriter:
    """Writer of checkpoints that does not overwrite a higher one that it knows of.

    Known positions come from a list before the first write, and from the writes since then. This
    package's stores also refuse a checkpoint that another writer has overtaken; then the positions
    are listed again.

    Attributes:
        stored: sequence numbers that the store holds, by partition id; None: to be listed.
        counters: `published`, `with_offset` (of the published ones) and `stale`.
    """

    def __init__(self, store: Any, scope: Scope) -> None:
        self.stored: Mapping[str, int] | None = None
        self.counters: Counter[str] = Counter()
        self._store = store
        self._scope = scope
        self._warned: set[str] = set()
        self._on_stale = {"on_stale": "raise"} if declares(store, "forward_only") else {}

    def write(self, partition: str, event: LastEvent) -> None:
        """Write a checkpoint, or log and count that the store is ahead.

        Raises:
            Exception: whatever the store raises; the outcome of the write is then unknown.
        """
        if self.stored is None:
            rows = self._store.list_checkpoints(*self._scope)
            numbers = {row["partition_id"]: row["sequence_number"] for row in rows}
            self.stored = {key: number for key, number in numbers.items() if number is not None}
        stored = self.stored.get(partition, -1)
        if event.sequence_number <= stored:
            if event.sequence_number < stored:
                self._refused(partition, event, stored)
            return
        checkpoint = {
            **self._scope.as_dict(),
            "partition_id": partition,
            "sequence_number": event.sequence_number,
            "offset": event.offset,
        }
        try:
            self._store.update_checkpoint(checkpoint, **self._on_stale)
        except StaleCheckpointError:
            self.stored = None
            self._refused(partition, event, "a later one")
            return
        self.stored = {**self.stored, partition: event.sequence_number}
        self.counters["published"] += 1
        self.counters["with_offset"] += bool(event.offset)
        self._warned.discard(partition)

    def _refused(self, partition: str, event: LastEvent, stored: int | str) -> None:
        self.counters["stale"] += 1
        if partition in self._warned:
            return
        self._warned.add(partition)
        log.warning(
            "checkpoint %s of partition %s of %s is not published, because the store is at %s. If "
            "the query was rewound or the hub created again, reset the checkpoints and create a "
            "new publisher",
            *(event.sequence_number, partition, self._scope, stored),
        )


class BackgroundWriter:
    """Background thread that writes the last position of each partition.

    If several positions of a partition wait, only the highest is written. A position whose write
    failed goes to the end of the queue, and is retried with increasing delays.

    Args:
        write: called with a partition id and its last event, by one thread.
        what: description of the positions, for errors.

    Attributes:
        failures: attempts that have raised.
    """

    def __init__(self, write: Callable[[str, LastEvent], None], what: object) -> None:
        self.failures = 0
        self._write = write
        self._what = what
        self._changed = threading.Condition()
        self._waiting: dict[str, LastEvent] = {}
        self._written: dict[str, LastEvent] = {}
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def waiting(self) -> Mapping[str, LastEvent]:
        """Positions that are not written yet, by partition id."""
        with self._changed:
            return dict(self._waiting)

    def put(self, events: Mapping[str, LastEvent]) -> None:
        """Enqueue positions and return at once."""
        with self._changed:
            for partition, event in events.items():
                # Spark reports the progress of every partition, even of those without new events.
                if event != self._written.get(partition):
                    self._waiting[partition] = max(event, self._waiting.get(partition, event))
            if self._waiting and self._thread is None and not self._is_closed:
                # Daemon: a store that hangs must not prevent the process from exiting.
                self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> None:
        """Wait until all enqueued positions are written.

        Raises:
            StoreUnavailableError: they are not written after `timeout` (s).
            CheckpointStoreError: the writer's error, if a retry cannot succeed.
        """
        with self._changed:
            # This ends the pause before the next attempt, which decides the outcome of the flush.
            self._error = None
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or is_final(self._error), timeout)
            late, error = ", ".join(sorted(self._waiting, key=int)), self._error
        if late and error is not None and is_final(error):
            raise error
        if late:
            raise StoreUnavailableError(
                f"the last checkpoints of {self._what}, partition {late}, are not in the store "
                f"after {timeout:g} s; they are retried until the publisher is closed"
            ) from error

    def close(self, timeout: float) -> None:
        """Stop the thread; wait at most `timeout` (s) for a write in progress."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        failures = 0
        while item := self._next():
            partition, event = item
            try:
                self._write(partition, event)
            except Exception as error:
                self._failed(error, partition, failures)
                failures += 1
            else:
                self._done(partition, event)
                failures = 0

    def _next(self) -> tuple[str, LastEvent] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else next(iter(self._waiting.items()))

    def _done(self, partition: str, event: LastEvent) -> None:
        with self._changed:
            self._error = None
            self._written[partition] = event
            latest = self._waiting.pop(partition)
            if latest != event:
                self._waiting[partition] = latest
            self._changed.notify_all()

    def _failed(self, error: Exception, partition: str, failures: int) -> None:
        """Record the error and pause, unless a flush ends the pause."""
        with self._changed:
            self.failures += 1
            if type(error) is not type(self._error):
                log.warning(
                    "checkpoints of %s wait for their store: %s", self._what, message_of(error)
                )
            self._error = error
            self._waiting[partition] = self._waiting.pop(partition)
            self._changed.notify_all()
            seconds = backoff(failures, random.random())
            self._changed.wait_for(lambda: self._is_closed or self._error is None, seconds)


def is_final(error: Exception | None) -> bool:
    """Return whether a retry cannot succeed."""
    return isinstance(error, CheckpointStoreError) and not isinstance(error, StoreUnavailableError)


class CheckpointPublisher:
    """Publisher of a streaming query's committed progress to a checkpoint store.

    Whatever source reads the hub (this package's, Kafka's, the JVM connector), a consumer with
    the same store then resumes after the last event that Spark has committed, and tools that
    compute the lag take it into account. A background thread writes to the store; its errors never
    stop a query, and are raised by `flush`.

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
        scope: scope of the checkpoints; its hub, and its namespace where the source reports one,
            select the source of the query.
        query_name: name or id of the query, if several queries of the session read this hub.
        source: index of the source, from 0, if several sources of the query read this hub.

    Raises:
        ConfigurationError: an argument is unusable, or the store is asynchronous.
    """

    @with_checked_arguments
    def __init__(
        self,
        store_or_url: CheckpointStore | str | Mapping[str, Any],
        scope: Scope,
        *,
        query_name: str | None = None,
        source: int | None = None,
    ) -> None:
        self._scope = Scope.checked(*checked_scope(scope))
        if query_name is not None:
            require_text("query_name", query_name, "the name or the id of a query")
        is_index = source is None or is_count(source, least=0)
        require("source", source, is_index, "the index of a source of the query, from 0")
        self._source = source
        self._store: Any = store_or_url
        if is_own := isinstance(store_or_url, str | Mapping):
            self._store = open_store(store_or_url)
        elif not has_sync_method(store_or_url, "update_checkpoint"):
            raise ConfigurationError(
                f"{type(store_or_url).__name__} cannot be written from the publisher's thread; "
                "expected a store of the synchronous kind (not of .aio), or the URL of one"
            )
        self._is_own = is_own
        self._writer = ForwardWriter(self._store, self._scope)
        self._background = BackgroundWriter(self._writer.write, self._scope)
        self._follower = QueryFollower(
            self._scope, self._background.put, query_name=query_name, source=source
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
            raise ConfigurationError("the publisher is closed; create another one")
        self._follower.attach(spark)
        return self

    def observe(self, frame: "DataFrame", partitions: int = PARTITIONS) -> "DataFrame":
        """Return the same rows, with an observation of the newest offset of each partition.

        A checkpoint without an offset is complete for every consumer that uses this package's
        stores. With an offset, older tools can read the checkpoint too, and the service finds the
        position faster.

        Args:
            frame: the output of the source, before any filter. Its rows have the columns of the
                connector; rows of Kafka's source have no offset to observe.
            partitions: number of partitions of the hub. Each costs about 0.1 microseconds per
                event; if the hub has more partitions, some checkpoints will lack the offset.

        Raises:
            ConfigurationError: the columns do not exist.
        """
        return self._follower.observe(frame, partitions)

    def catch_up(
        self, checkpoint_location: str | Path, spark: "SparkSession | None" = None
    ) -> Mapping[str, int]:
        """Publish what a query had committed before it was stopped or killed.

        Args:
            checkpoint_location: of the query. If the folder is empty or missing, the query has
                committed nothing.
            spark: a classic session, if Spark's Hadoop client has to read the folder.

        Returns:
            The sequence numbers of the last committed events, by partition id.

        Raises:
            ConfigurationError: the folder is not a checkpoint of a query that reads this hub, in
                this namespace.
        """
        if not checkpoint_files(checkpoint_location, spark).names("."):
            return {}
        checkpoint = read_spark_checkpoint(
            checkpoint_location, self._scope.eventhub_name, spark, source=self._source
        )
        namespace = self._scope.fully_qualified_namespace
        if checkpoint.namespace.casefold() not in ("", namespace.casefold()):
            raise ConfigurationError(
                f"the query of {checkpoint_location} reads hub {self._scope.eventhub_name} in "
                f"{quoted(checkpoint.namespace)}, and the publisher's scope names "
                f"{quoted(namespace)}; create the publisher with the scope of the hub that the "
                "query reads"
            )
        positions = checkpoint.positions
        self._background.put({key: LastEvent(number) for key, number in positions.items()})
        return positions

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until all progress that Spark has committed so far is in the store.

        Call it after `awaitTermination()` or `stop()`, because Spark reports a batch some time
        later. As the first line of a `foreachBatch` function it makes each batch wait until the
        previous one is in the store. Then a crash duplicates at most one batch, whether the query
        resumes from Spark's checkpoint or, if that is lost, from the store.

        Raises:
            ConfigurationError: the progress was ambiguous, and nothing has been published since;
                or the session's queries read other hubs only.
            StoreUnavailableError: not everything is stored after `timeout` (s).
            StoreError: the store refuses a checkpoint.
        """
        require_seconds("timeout", timeout, or_zero=True)
        deadline = time.monotonic() + timeout
        is_reported = self._follower.collect(timeout)
        if self._follower.problem is not None:
            raise self._follower.problem
        self._background.flush(max(0.0, deadline - time.monotonic()))
        if not is_reported:
            raise StoreUnavailableError(
                f"Spark has not reported the end of a query within {timeout:g} s; its last "
                f"progress may not be in the store of {self._scope} yet"
            )

    def close(self, timeout: float = 30.0) -> None:
        """Flush, detach from the session, and close the store if it was opened here.

        Raises:
            CheckpointStoreError: as `flush`; everything is closed nevertheless.
        """
        require_seconds("timeout", timeout, or_zero=True)
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.flush(timeout)
        finally:
            self._follower.detach()
            self._background.close(timeout)
            if self._is_own:
                self._store.close()

    def stats(self) -> PublisherStats:
        """Return the statistics up to now."""
        counters = self._writer.counters
        return PublisherStats(
            published=counters["published"],
            with_offset=counters["with_offset"],
            stale=counters["stale"],
            failures=self._background.failures,
            waiting={key: event.sequence_number for key, event in self._background.waiting.items()},
            stored=self._writer.stored or {},
            behind_latest=self._follower.behind,
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
            log.warning("%s", failure)
