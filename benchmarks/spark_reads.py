"""What Spark reads: a hub or a topic, as a batch or a stream, into nothing or into Parquet."""

import itertools
import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

MICRO_BATCHES = 4
"""Into so many a stream cuts what is there."""
LOOK_EVERY = 1
"""Seconds between two looks at a stream's progress: they cost the processor that is measured."""
TIMES = {"trigger": "triggerExecution", "plan": "latestOffset", "work": "addBatch"}
"""Our names for some of the times that a query tells of each batch."""

_groups = itertools.count()

Load = Callable[[Any, Mapping[str, str]], DataFrame]
"""Makes a frame with `spark.read` or `spark.readStream` and further options."""


@dataclass(frozen=True)
class Source:
    """Something to read.

    Attributes:
        load: as it says.
        limit: the option that bounds a micro-batch.
    """

    load: Load
    limit: str


@dataclass(frozen=True)
class Took:
    """What a read took.

    Attributes:
        seconds: on the clock: of a batch from `load()` to its end, of a stream the time of all
            triggers that brought rows, without the start of the query.
        in_tasks: seconds that tasks ran, all of them together.
    """

    seconds: float
    in_tasks: float


def hub(connection_string: str, **options: str) -> Source:
    """A hub by our source."""
    return ours(connectionString=connection_string, **options)


def ours(**options: str) -> Source:
    """Something by our source."""
    return Source(
        lambda reader, more: reader.format("eventhubs").options(**options, **more).load(),
        "maxEventsPerTrigger",
    )


def hub_of_kafka(address: str, name: str) -> Source:
    """A topic by our source."""
    return ours(transport="kafka", eventHubName=name, **{"kafka.bootstrap.servers": address})


def topic(address: str, name: str, with_headers: bool) -> Source:
    """A topic by Spark's own source."""
    fixed = {
        "kafka.bootstrap.servers": address,
        "subscribe": name,
        "startingOffsets": "earliest",
        "includeHeaders": json.dumps(with_headers),
    }
    return Source(
        lambda reader, more: reader.format("kafka").options(**fixed, **more).load(),
        "maxOffsetsPerTrigger",
    )


@dataclass(frozen=True)
class Reads:
    """Reads in one session.

    Attributes:
        spark: the session.
        folder: for what is written.
    """

    spark: SparkSession
    folder: Path

    def __call__(self, source: Source, mode: str, sink: str, events: int) -> Took:
        """Read so many events, which are all that there are."""
        if mode == "batch":
            return self.batch(source, sink)
        return self.stream(source, sink, events)

    def batch(self, source: Source, sink: str) -> Took:
        """Read a batch."""
        context, group = self.spark.sparkContext, f"read-{next(_groups)}"
        context.setJobGroup(group, "a read that is measured")
        begun = time.perf_counter()
        frame = source.load(self.spark.read, {})
        frame.write.format(sink).mode("overwrite").save(*self._path(sink))
        return Took(time.perf_counter() - begun, seconds_in_tasks(self.spark, group))

    def stream(self, source: Source, sink: str, events: int) -> Took:
        """Read a stream, in a few micro-batches."""
        limit = {source.limit: str(-(-events // MICRO_BATCHES))}
        rows = millis = 0
        with closing(self.progress(source, sink, limit)) as batches:
            while rows < events:
                group, one = next(batches)
                rows += one["numInputRows"]
                millis += one["durationMs"]["triggerExecution"]
        return Took(millis / 1000, seconds_in_tasks(self.spark, group))

    def triggers(self, source: Source, limit: int, count: int) -> dict[str, list[float]]:
        """The times, in seconds, of so many triggers of a stream once it has got going."""
        with closing(self.progress(source, "noop", {source.limit: str(limit)})) as batches:
            # The first of all starts Python's processes.
            chosen = [one["durationMs"] for _, one in itertools.islice(batches, 2, 2 + count)]
        return {name: [one[key] / 1000 for one in chosen] for name, key in TIMES.items()}

    def progress(
        self, source: Source, sink: str, options: Mapping[str, str]
    ) -> Generator[tuple[str, Any], None, None]:
        """The job group and the progress of each micro-batch that brings rows, one by one."""
        frame = source.load(self.spark.readStream, options)
        checkpoint = self.folder / f"query-{next(_groups)}"
        query = (
            frame.writeStream.format(sink)
            .option("checkpointLocation", str(checkpoint))
            .start(*self._path(sink))
        )
        seen = -1
        try:
            while not query.awaitTermination(LOOK_EVERY):
                for one in query.recentProgress:
                    if one["batchId"] > seen and one["numInputRows"]:
                        seen = one["batchId"]
                        yield str(query.runId), one
        finally:
            query.stop()

    def _path(self, sink: str) -> tuple[str, ...]:
        return () if sink == "noop" else (str(self.folder / f"out-{next(_groups)}"),)


def seconds_in_tasks(spark: SparkSession, group: str) -> float:
    """Return the seconds for which the tasks of a job group have run, all of them together."""
    context = spark.sparkContext
    scala = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), scala.statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [stage for job in jobs if job for stage in job.stageIds]
    return sum(store.lastStageAttempt(stage).executorRunTime() for stage in stages) / 1000
