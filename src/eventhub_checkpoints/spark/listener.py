"""Listener to the queries of a session.

It extends a class of PySpark, so this module is imported only if there is a session. Spark 4 runs a
listener in this process, also with Spark Connect: nothing is pickled.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import MissingDriverError

try:
    from pyspark.sql.streaming.listener import StreamingQueryListener
except ImportError as error:
    raise MissingDriverError.of_extra("CheckpointPublisher", "spark") from error

if TYPE_CHECKING:
    from pyspark.sql.streaming import listener


class ProgressListener(StreamingQueryListener):
    """Listener that passes on the events of a session's queries.

    Args:
        started: called with the query's id, the run's id and the query's name. Spark waits for it,
            as for the others, so it must be fast.
        progressed: called with the progress of a committed batch.
        ended: called with the run's id, after everything else about the run.
    """

    def __init__(
        self,
        started: Callable[[str, str, str | None], None],
        progressed: Callable[[object], None],
        ended: Callable[[str], None],
    ) -> None:
        self._started, self._progressed, self._ended = started, progressed, ended

    def onQueryStarted(self, event: "listener.QueryStartedEvent") -> None:  # noqa: N802
        self._started(str(event.id), str(event.runId), event.name)

    def onQueryProgress(self, event: "listener.QueryProgressEvent") -> None:  # noqa: N802
        self._progressed(event.progress)

    def onQueryTerminated(self, event: "listener.QueryTerminatedEvent") -> None:  # noqa: N802
        self._ended(str(event.runId))
