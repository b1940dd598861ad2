"""Listener and observation of a streaming query.

Both use PySpark's classes, so this module is imported only where there is a session. Spark 4 runs
a listener in this process, also with Spark Connect: nothing is pickled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError
from eventhub_checkpoints.spark.given import column_names
from eventhub_checkpoints.spark.publishing.observed import COLUMNS, NEWEST, newest_events

try:
    from pyspark.sql.functions import expr
    from pyspark.sql.streaming.listener import StreamingQueryListener
except ImportError as error:
    raise MissingDriverError.of_extra("CheckpointPublisher", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


@dataclass(frozen=True)
class Told:
    """Callbacks of a listener. Spark waits for them, so they must be fast."""

    started: Callable[[str, str, str | None], None]
    progressed: Callable[[object], None]
    ended: Callable[[str], None]


class ProgressListener(StreamingQueryListener):
    """Listener that passes on the events of a session's queries."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        """Pass on that a query has started or restarted."""
        self._told.started(str(event.id), str(event.runId), event.name)

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        """Pass on the progress of a committed batch."""
        self._told.progressed(event.progress)

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        """Pass on the end of a run, which is its last event."""
        self._told.ended(str(event.runId))


def with_observation(frame: "DataFrame", name: str, partitions: int) -> "DataFrame":
    """Return the same rows; the query's progress then has the newest event of each partition.

    Raises:
        ConfigurationError: the rows have no offsets to observe.
    """
    lacking = [column for column in COLUMNS if column not in column_names(frame)]
    if lacking:
        raise ConfigurationError(
            f"the rows have no column {', '.join(lacking)}: observe them right behind the source. "
            "Spark's Kafka source gives no offset text, so leave observe() out there; the "
            "checkpoints tell the place by their sequence numbers"
        )
    return frame.observe(name, expr(newest_events(partitions)).alias(NEWEST))
