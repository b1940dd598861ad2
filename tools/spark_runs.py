"""Spark sessions with additional jars, and what a run of a stream has read and reported."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import eventhub_checkpoints
from waiting import LIMIT

SOURCES = str(Path(eventhub_checkpoints.__file__).parent.parent)
PARTITION, NUMBER = "partition", "number"
"""Columns that a frame needs here: a partition id as a string, and a sequence number."""
Numbers = dict[str, list[int]]
DRAINS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
"""Whether AvailableNow reads all that is there: before 4.2 it is one batch."""

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session that lives for seconds, and would spend most of them compiling."""


def wait_for_listeners(spark: SparkSession) -> None:
    """Wait until listeners have every event of what has ended, which Spark gives 10 s."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(1000 * LIMIT))


def killable(folder: Path) -> dict[str, str]:
    """Return settings of a quick session that leaves its files in a folder even if it is killed."""
    java = f"-Djava.io.tmpdir={folder} {QUICK['spark.driver.extraJavaOptions']}"
    return QUICK | {"spark.local.dir": str(folder), "spark.driver.extraJavaOptions": java}


OF_SPARK = ("failed to connect back", "of collection, expected")
"""Failures by which Spark ends a query of its own accord, before a row of the micro-batch has
reached the sink: its Python processes did not start within 10 s, which a busy machine may exceed;
or it serialized a plan while another thread changed that (4.3, `TreeNode._tags`, without
whole-stage code generation).
"""


def run_to_the_end(run: Callable[[], object], times: int = 20) -> None:
    """Run a query to its end, again if Spark ended it of its own accord.

    Raises:
        StreamingQueryException: the query failed otherwise, or as often as it was run.
    """
    for left in reversed(range(times)):
        try:
            run()
        except StreamingQueryException as error:
            if not left or not any(each in str(error) for each in OF_SPARK):
                raise
        else:
            return


@contextmanager
def session(
    jars: Sequence[Path] = (), settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a local session with two cores and jars; its Python finds the package on PYTHONPATH."""
    path = os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH", "")]))
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with patch.dict(os.environ, environment):
        builder = SparkSession.builder.master("local[2]")
        common = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
        }
        # Set only if there are jars: an empty string would be taken for a path.
        named = {"spark.jars": ",".join(map(str, jars))} if jars else {}
        for name, value in {**common, **named, **(settings or {})}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        # The tests provoke errors, and see them raised.
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            spark.stop()


def sorted_numbers(read: Iterable[tuple[str, int]]) -> Numbers:
    """Return the sorted sequence numbers by partition, each as often as it was read."""
    found: Numbers = {}
    for partition, number in read:
        found.setdefault(partition, []).append(number)
    return {partition: sorted(held) for partition, held in sorted(found.items())}


def batch(frame: DataFrame) -> Numbers:
    """Read a batch."""
    rows = frame.select(PARTITION, NUMBER).collect()
    return sorted_numbers((row[PARTITION], row[NUMBER]) for row in rows)


@dataclass
class Run:
    """Run of a stream until it had read everything that was there.

    Attributes:
        batches: events that each batch has read, by its id.
        heard: progress events that a listener received, in the format of its Spark.
        last, recent: progress that the query itself reports.
        error: error that ended it early.
    """

    batches: dict[int, Numbers] = field(default_factory=dict)
    heard: list[Any] = field(default_factory=list)
    last: Any = None
    recent: list[Any] = field(default_factory=list)
    error: Exception | None = None

    @property
    def read(self) -> Numbers:
        """Return everything that was read."""
        return sorted_numbers(
            (partition, number)
            for held in self.batches.values()
            for partition, some in held.items()
            for number in some
        )


def stream(
    frame: DataFrame, checkpoint: Path, sink: Callable[[DataFrame, int], None] | None = None
) -> Run:
    """Read a stream up to the current end.

    Args:
        frame: a streaming frame.
        checkpoint: folder of the query's own progress.
        sink: called with each batch after it was recorded, and may raise.
    """
    run = Run()

    def note(rows: DataFrame, batch_id: int) -> None:
        run.batches[batch_id] = batch(rows)
        if sink is not None:
            sink(rows, batch_id)

    spark = frame.sparkSession
    listener = Listening(run.heard)
    spark.streams.addListener(listener)
    try:
        writer = frame.writeStream.foreachBatch(note).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            query.awaitTermination()
        except Exception as error:
            run.error = error
        run.last, run.recent = query.lastProgress, list(query.recentProgress)
        wait_for_listeners(spark)
    finally:
        spark.streams.removeListener(listener)
    return run


class Listening(StreamingQueryListener):
    """Keeps the progress events that it receives."""

    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Ignore the start."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Keep the progress event."""
        self._heard.append(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Ignore idle events."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Ignore the end."""
