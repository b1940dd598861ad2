"""A query as PySpark lets it be watched: by a listener, and by an observation.

Both are made of PySpark's classes, so this module is imported where there is a session. Spark 4
runs a listener in this process, also through Spark Connect: nothing is pickled.
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
    """Whom a listener tells what it hears. Spark waits for them, so they are quick."""

    started: Callable[[str, str, str | None], None]
    progressed: Callable[[object], None]
    ended: Callable[[str], None]


class ProgressListener(StreamingQueryListener):
    """Passes on what Spark tells of the queries of a session."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        """A query begins, or begins again."""
        self._told.started(str(event.id), str(event.runId), event.name)

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        """A batch is committed."""
        self._told.progressed(event.progress)

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        """A query is over; nothing more is told of this run."""
        self._told.ended(str(event.runId))


def with_observation(frame: "DataFrame", name: str, partitions: int) -> "DataFrame":
    """The same rows; the newest event of each partition is told in the query's progress.

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
