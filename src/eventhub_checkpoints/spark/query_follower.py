"""Follower of the streaming query that reads a hub, from the progress of a session's queries.

The authoritative position is the end offset that Spark has committed. An observation in the same
progress only adds the offset string, and only if it is of the very same event. An observation
cannot be grouped, so it has one aggregate per bucket, and the number of a partition determines its
bucket.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared.error_messages import described
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.spark import offsets
from eventhub_checkpoints.spark.validation import column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

OBSERVED_COLUMNS = ("partition", "sequenceNumber", "offset")
"""With the connector's names."""

LATEST = "newest"
"""Name of the observed column."""


@dataclass(frozen=True, slots=True, order=True)
class LastEvent:
    """Last event of a partition that a query has committed.

    Attributes:
        sequence_number: of the event.
        offset: of the same event, an opaque string; `""` if it was not observed.
    """

    sequence_number: int
    offset: str = ""


def latest_events(buckets: int) -> str:
    """Return the SQL aggregate: the last event of each of so many buckets.

    The last event has the highest sequence number. If several partitions share a bucket, only one
    of them is observed.
    """
    aggregates = (
        f"max(CASE WHEN pmod(try_cast(partition AS INT), {buckets}) = {bucket} "
        "THEN struct(sequenceNumber, offset, partition) END)"
        for bucket in range(buckets)
    )
    return f"array_compact(array({', '.join(aggregates)}))"


def observed_offsets(observed: Any) -> dict[tuple[str, int], str]:
    """Return the offsets by partition id and sequence number, from a query's progress.

    Spark returns a row of rows, Spark Connect a row of dicts, Spark 3 a dict; and a null, or
    nothing at all, if no action has read the rows.
    """
    row = observed.asDict(recursive=True) if hasattr(observed, "asDict") else observed
    events = row.get(LATEST) if isinstance(row, Mapping) else None
    return {
        (event["partition"], event["sequenceNumber"]): event["offset"]
        for event in events or ()
        if event["offset"]
    }


class QueryRuns:
    """Runs of a session's queries, as reported by its listener.

    Only one query at a time is followed: of two queries that read the same hub, one may be far
    ahead, and its position would make consumers skip events that the other has not processed. After
    a query has ended, another one may be followed.

    Args:
        query_name: name or id of the one query to follow; None: the only one that reads the hub.
    """

    def __init__(self, query_name: str | None = None) -> None:
        self._query_name = query_name
        self._seen: dict[str, str | None] = {}
        self._running: set[str] = set()
        self._over: set[str] = set()
        self._followed: tuple[str, str, int] | None = None
        self._elsewhere: dict[str, str] = {}
        self._changed = threading.Condition()

    def started(self, query_id: str, run_id: str, name: str | None) -> None:
        """Record that a query runs; Spark will report its end."""
        with self._changed:
            self._seen[query_id] = name
            if run_id not in self._over | self._running:
                self._running.add(run_id)
                self._elsewhere.pop(query_id, None)

    def ended(self, run_id: str) -> None:
        """Record that Spark has reported everything about a run."""
        with self._changed:
            self._over.add(run_id)
            self._running.discard(run_id)
            self._changed.notify_all()

    def is_followed(self, query_id: str, name: str | None) -> bool:
        """Return whether this is the named query; True if no query was named."""
        return self._query_name is None or self._query_name in (query_id, name)

    def follow(self, query_id: str, run_id: str, batch_id: int) -> bool:
        """Return whether this is the newest batch reported for the query.

        Raises:
            ConfigurationError: another query reads the hub too, and has not ended.
        """
        with self._changed:
            if self._followed is not None:
                other, run, batch = self._followed
                if run == run_id and batch > batch_id:
                    return False
                if other != query_id and run in self._running:
                    raise ConfigurationError(
                        f"two queries read the hub, {self._label(other)} and "
                        f"{self._label(query_id)}; choose the one to publish with query_name= (a "
                        "name or an id)"
                    )
            self._followed = (query_id, run_id, batch_id)
            return True

    def reads_elsewhere(self, query_id: str, where: str) -> bool:
        """Record that a query does not read the hub; return whether this was not known.

        Args:
            query_id: of the query.
            where: the hubs that it reads, for messages; "" if it reads none.
        """
        with self._changed:
            is_new = query_id not in self._elsewhere
            self._elsewhere[query_id] = where
            return is_new

    def check_hub(self, hub: object) -> None:
        """Check that a query reads the hub: a misspelt name would publish nothing.

        A query that has not reported an offset yet may do so; queries that read no hub at all do
        not show that the name is wrong.

        Raises:
            ConfigurationError: every query of the session reads something else, and at least one a
                hub.
        """
        with self._changed:
            queries = [key for key, name in self._seen.items() if self.is_followed(key, name)]
            hubs = {self._label(key): self._elsewhere.get(key) for key in queries}
            if self._followed is None and None not in hubs.values() and any(hubs.values()):
                reads = ", ".join(f"{key} reads {where}" for key, where in hubs.items() if where)
                raise ConfigurationError(
                    f"no query reads {hub}, the hub of the publisher's scope, so nothing is "
                    f"published: {reads}. Create the publisher with the scope of the hub that the "
                    "query reads, and call flush() after the query was started"
                )

    def check_named(self) -> None:
        """Check that the named query exists: a misspelt name would publish nothing.

        Raises:
            ConfigurationError: queries have run, but not the named one.
        """
        with self._changed:
            if self._seen and not any(self.is_followed(*query) for query in self._seen.items()):
                raise ConfigurationError(
                    f"no query is named {quoted(self._query_name)}; the session has run "
                    f"{', '.join(map(self._label, self._seen))}"
                )

    def wait_for_end(self, running: Iterable[str], timeout: float) -> bool:
        """Return whether, within `timeout` (s), Spark has reported the end of all other runs.

        Spark reports it from another thread, some time after the query has ended.
        """
        with self._changed:
            awaited = self._running - set(running)
            return self._changed.wait_for(lambda: not awaited & self._running, timeout)

    def _label(self, query_id: str) -> str:
        return self._seen.get(query_id) or query_id


class QueryFollower:
    """Follower of the one query that reads a hub, which passes its positions on.

    Nothing is raised into Spark. Ambiguous progress ends the following, because a guess could be
    ahead of the processed events; `problem` has the reason.

    Args:
        scope: its hub, and its namespace where a source reports one, select the query.
        put: called with the last committed events, by partition id.
        query_name: name or id of the query; None: the only one that reads the hub.
        source: index of its source, if several read the hub.

    Attributes:
        problem: why nothing is passed on; None if all is well.
        behind: how far the query was behind the end of the hub; None if no source has reported it.
    """

    def __init__(
        self,
        scope: Scope,
        put: Callable[[Mapping[str, LastEvent]], None],
        *,
        query_name: str | None,
        source: int | None,
    ) -> None:
        self.problem: Exception | None = None
        self.behind: offsets.BehindLatest | None = None
        self._scope = scope
        self._hub = scope.eventhub_name
        self._put = put
        self._source = source
        self._runs = QueryRuns(query_name)
        self._session: SparkSession | None = None
        self._listener: Any = None
        self._is_over = False
        self._observation = f"eventhub_checkpoints of {self._hub}"

    def attach(self, spark: "SparkSession") -> None:
        """Listen to the queries of a session.

        Raises:
            ConfigurationError: it is attached to a session already, or `spark` is not a session.
        """
        from eventhub_checkpoints.spark.listener import ProgressListener

        if self._session is not None:
            raise ConfigurationError(
                f"this publisher of hub {quoted(self._hub)} is attached to a session already; "
                "create a publisher for each query"
            )
        require_type("spark", spark, hasattr(spark, "streams"), "a SparkSession")
        self._session = spark
        self._listener = ProgressListener(self._runs.started, self.take, self._runs.ended)
        for query in spark.streams.active:
            self._runs.started(str(query.id), str(query.runId), query.name)
        spark.streams.addListener(self._listener)

    def observe(self, frame: "DataFrame", partitions: int) -> "DataFrame":
        """Return the same rows; the query's progress then has the last event of each partition.

        Raises:
            ConfigurationError: the rows have no offsets to observe.
        """
        columns = column_names(frame)
        if missing := [name for name in OBSERVED_COLUMNS if name not in columns]:
            raise ConfigurationError(
                f"the rows have no column {', '.join(missing)}: call observe() directly on the "
                "output of the source. Rows of Spark's Kafka source have no offset string, so "
                "leave observe() out there; their checkpoints have the sequence number only"
            )
        from pyspark.sql.functions import expr

        return frame.observe(self._observation, expr(latest_events(partitions)).alias(LATEST))

    def take(self, progress: object) -> None:
        """Pass on the positions of the hub in a query's progress, if it has any."""
        if self._is_over or self.problem is not None:
            return
        try:
            if self._is_followed(progress):
                self._put(self._last_events(progress))
                self._report_lag(progress)
        except Exception as error:
            self.problem = error
            log.error("the progress of hub %s is not published: %s", self._hub, described(error))

    def _last_events(self, progress: object) -> dict[str, LastEvent]:
        """Return the last committed events, with their offsets if observed."""
        metrics = offsets.field(progress, "observedMetrics")
        observed = metrics.get(self._observation) if isinstance(metrics, Mapping) else None
        texts = observed_offsets(observed)
        numbers = offsets.parse_progress(progress, self._hub, source=self._source)
        return {
            partition: LastEvent(number, texts.get((partition, number), ""))
            for partition, number in numbers.items()
        }

    def _report_lag(self, progress: object) -> None:
        """Report how far the query is behind, if its source reports the end of the hub."""
        behind = offsets.behind_latest(progress, self._hub, source=self._source)
        if behind is None:
            return
        self.behind = behind
        figures = {"min": behind.min, "avg": behind.avg, "max": behind.max}
        tracing.behind_latest(tuple(self._scope), figures)
        log.info(
            "query %s is behind the end of hub %s by %d (min), %.1f (avg) and %d (max) events of a "
            "partition",
            *(offsets.field(progress, "name") or offsets.field(progress, "id"), self._hub),
            *figures.values(),
        )

    def collect(self, timeout: float) -> bool:
        """Take what Spark has committed by now; return whether it was all reported in time.

        Raises:
            ConfigurationError: no query has the name, or none reads the hub.
        """
        try:
            active = [] if self._session is None else list(self._session.streams.active)
        except Exception as error:
            # Without a session, nothing more will be reported.
            log.info("the session has ended: %s", described(error))
            return True
        is_reported = self._runs.wait_for_end([str(query.runId) for query in active], timeout)
        for query in active:
            self._runs.started(str(query.id), str(query.runId), query.name)
            if (progress := query.lastProgress) is not None:
                self.take(progress)
        self._runs.check_named()
        self._runs.check_hub(
            f"{quoted(self._hub)} in {quoted(self._scope.fully_qualified_namespace)}"
        )
        return is_reported

    def detach(self) -> None:
        """Take no more progress, and remove the listener if the session still exists.

        Spark Connect's client deadlocks if a listener is removed while queries run: it holds a lock
        while it waits for the event thread, which needs the same lock for an event. There the
        listener stays registered while queries run, and ignores events.

        Source: PySpark 4.3.0, `sql/connect/streaming/query.py`, `StreamingQueryListenerBus.remove`.
        """
        self._is_over = True
        if self.behind is not None:
            tracing.behind_latest(tuple(self._scope), None)
        if self._session is None:
            return
        try:
            streams = self._session.streams
            if getattr(self._session, "_jvm", None) is not None or not streams.active:
                streams.removeListener(self._listener)
        except Exception as error:
            log.info("the listener could not be removed: %s", described(error))

    def _is_followed(self, progress: object) -> bool:
        query_id, name = str(offsets.field(progress, "id")), offsets.field(progress, "name")
        if not self._runs.is_followed(query_id, str(name) if name else None):
            return False
        sources = offsets.field(progress, "sources")
        assert isinstance(sources, list)
        ends = [offsets.end_offset(source) for source in sources]
        if not self._reads_hub(ends):
            # A wrong hub name would publish nothing. A query without rows is exempt, because it
            # may have no offset yet.
            where = ", ".join(filter(None, map(offsets.hub_and_namespace, ends)))
            if offsets.field(progress, "numInputRows") and self._runs.reads_elsewhere(
                query_id, where
            ):
                log.warning(
                    "query %s has read events, but not those of hub %r in %r: its "
                    "progress is not published",
                    *(name or query_id, self._hub, self._scope.fully_qualified_namespace),
                )
            return False
        batch = offsets.field(progress, "batchId")
        assert isinstance(batch, int)
        return self._runs.follow(query_id, str(offsets.field(progress, "runId")), batch)

    def _reads_hub(self, ends: list[object]) -> bool:
        """Return whether a source reads the hub, in the scope's namespace if it reports one."""
        indexes = offsets.sources_of_hub(ends, self._hub)
        if self._source in indexes:
            indexes = [self._source]
        namespace = self._scope.fully_qualified_namespace.casefold()
        return any(offsets.namespace_of(ends[i]).casefold() in ("", namespace) for i in indexes)
