"""Tracking of the committed positions of one hub, from the progress of a session's queries."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.spark.given import require_kind
from eventhub_checkpoints.spark.progress.parsing import (
    by_hub,
    end_of,
    field,
    parse_progress,
    reading,
)
from eventhub_checkpoints.spark.publishing.observed import observed_offsets
from eventhub_checkpoints.spark.publishing.outbox import LastEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Runs:
    """Runs of a session's queries, as reported by its listener.

    Only one query at a time is followed: of two queries that read the same hub, one may be far
    ahead, and its position would make consumers skip events that the other has not processed. After
    a query has ended, another one may be followed.

    Args:
        query_name: name or id of the one query to follow; None: the only one that reads the hub.
    """

    def __init__(self, query_name: str | None = None) -> None:
        self._wanted = query_name
        self._seen: dict[str, str | None] = {}
        self._running: set[str] = set()
        self._over: set[str] = set()
        self._followed: tuple[str, str, int] | None = None
        self._changed = threading.Condition()

    def started(self, query_id: str, run_id: str, name: str | None) -> None:
        """Record that a query runs; Spark will report its end."""
        with self._changed:
            self._seen[query_id] = name
            if run_id not in self._over:
                self._running.add(run_id)

    def ended(self, run_id: str) -> None:
        """Record that Spark has reported everything about a run."""
        with self._changed:
            self._over.add(run_id)
            self._running.discard(run_id)
            self._changed.notify_all()

    def is_wanted(self, query_id: str, name: str | None) -> bool:
        """Return whether this is the named query; True if no query was named."""
        return self._wanted is None or self._wanted in (query_id, name)

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
                        f"two queries read the hub, {self._told(other)} and "
                        f"{self._told(query_id)}; say which one's progress is published, with "
                        "query_name= (a name or an id)"
                    )
            self._followed = (query_id, run_id, batch_id)
            return True

    def check_named(self) -> None:
        """Check that the named query exists: a misspelt name would publish nothing.

        Raises:
            ConfigurationError: queries have run, but not the named one.
        """
        with self._changed:
            if self._seen and not any(self.is_wanted(*one) for one in self._seen.items()):
                raise ConfigurationError(
                    f"no query is named {quoted(self._wanted)}; there was "
                    f"{', '.join(map(self._told, self._seen))}"
                )

    def wait_for_end(self, running: Iterable[str], timeout: float) -> bool:
        """Return whether, within `timeout` (s), Spark has reported the end of all other runs.

        Spark reports it from another thread, some time after the query has ended.
        """
        with self._changed:
            awaited = self._running - set(running)
            return self._changed.wait_for(lambda: not awaited & self._running, timeout)

    def _told(self, query_id: str) -> str:
        return self._seen.get(query_id) or query_id


_LOGGER = logging.getLogger(__name__)


class Following:
    """Follower of the one query that reads a hub, which passes its positions on.

    Nothing is raised into Spark. Ambiguous progress ends the following, because a guess could be
    ahead of the processed events; `problem` has the reason.

    Args:
        hub: the hub's name, as the sources of a query know it.
        put: called with the last committed events, by partition id.
        query_name: name or id of the query; None: the only one that reads the hub.
        source: index of its source, if several read the hub.
    """

    def __init__(
        self,
        hub: str,
        put: Callable[[Mapping[str, LastEvent]], None],
        *,
        query_name: str | None,
        source: int | None,
    ) -> None:
        self.problem: Exception | None = None
        self._hub = hub
        self._put = put
        self._source = source
        self._runs = Runs(query_name)
        self._strangers: set[str] = set()
        self._session: SparkSession | None = None
        self._listener: Any = None
        self._is_over = False
        self._observation = f"eventhub_checkpoints of {hub}"

    def attach(self, spark: "SparkSession") -> None:
        """Listen to the queries of a session.

        Raises:
            ConfigurationError: it is attached to a session already, or `spark` is not a session.
        """
        from eventhub_checkpoints.spark.publishing.watching import ProgressListener, Told

        if self._session is not None:
            raise ConfigurationError(
                f"this publisher of hub {quoted(self._hub)} is attached to a session already; one "
                "publisher follows one query"
            )
        require_kind("spark", spark, hasattr(spark, "streams"), "a SparkSession")
        self._session = spark
        self._listener = ProgressListener(Told(self._runs.started, self.take, self._runs.ended))
        for query in spark.streams.active:
            self._runs.started(str(query.id), str(query.runId), query.name)
        spark.streams.addListener(self._listener)

    def observe(self, frame: "DataFrame", partitions: int) -> "DataFrame":
        """Return the rows with an observation of their offsets in the query's progress."""
        from eventhub_checkpoints.spark.publishing.watching import with_observation

        return with_observation(frame, self._observation, partitions)

    def take(self, progress: object) -> None:
        """Pass on the positions of the hub in a query's progress, if it has any."""
        if self._is_over or self.problem is not None:
            return
        try:
            if self._is_followed(progress):
                self._put(self.last_events(progress))
        except Exception as error:
            self.problem = error
            _LOGGER.error("the progress of hub %s is not published: %s", self._hub, error)

    def last_events(self, progress: object) -> dict[str, LastEvent]:
        """Return the last committed events, with their offsets if observed."""
        metrics = field(progress, "observedMetrics")
        observed = metrics.get(self._observation) if isinstance(metrics, Mapping) else None
        offsets = observed_offsets(observed)
        return {
            one: LastEvent(number, offsets.get((one, number), ""))
            for one, number in parse_progress(progress, self._hub, source=self._source).items()
        }

    def collect(self, timeout: float) -> bool:
        """Take what Spark has committed by now; return whether it was all reported in time."""
        try:
            active = [] if self._session is None else list(self._session.streams.active)
        except Exception as error:
            # Without a session, nothing more will be reported.
            _LOGGER.info("the session has ended: %s", error)
            return True
        is_told = self._runs.wait_for_end([str(query.runId) for query in active], timeout)
        for query in active:
            if (progress := query.lastProgress) is not None:
                self.take(progress)
        self._runs.check_named()
        return is_told

    def detach(self) -> None:
        """Take no more progress, and remove the listener if the session still exists.

        Spark Connect's client deadlocks if a listener is removed while queries run: it holds a lock
        while it waits for the event thread, which needs the same lock for an event. There the
        listener stays registered while queries run, and ignores events.

        Source: PySpark 4.3.0, `sql/connect/streaming/query.py`, `StreamingQueryListenerBus.remove`.
        """
        self._is_over = True
        if self._session is None:
            return
        try:
            streams = self._session.streams
            if getattr(self._session, "_jvm", None) is not None or not streams.active:
                streams.removeListener(self._listener)
        except Exception as error:
            _LOGGER.info("the listener could not be removed: %s", error)

    def _is_followed(self, progress: object) -> bool:
        query_id, name = str(field(progress, "id")), field(progress, "name")
        if not self._runs.is_wanted(query_id, str(name) if name else None):
            return False
        if not reading([by_hub(end) for end in ends_of(progress)], self._hub):
            self._warn_once(query_id, progress)
            return False
        batch = field(progress, "batchId")
        assert isinstance(batch, int)
        return self._runs.follow(query_id, str(field(progress, "runId")), batch)

    def _warn_once(self, query_id: str, progress: object) -> None:
        """Warn once about a query that reads other hubs: a wrong hub name would publish nothing.

        A query without rows is exempt, because it may have no offset yet.
        """
        if field(progress, "numInputRows") and query_id not in self._strangers:
            self._strangers.add(query_id)
            _LOGGER.warning(
                "query %s reads, and none of its sources is hub %r: its progress is not published",
                field(progress, "name") or query_id,
                self._hub,
            )


def ends_of(progress: object) -> list[object]:
    """Return the end offset of each source of a query."""
    sources = field(progress, "sources")
    assert isinstance(sources, list)
    return [end_of(source) for source in sources]
