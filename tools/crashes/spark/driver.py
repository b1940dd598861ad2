"""Driver with many queries: `python -m crashes.spark.driver JOBS`, a pickled list of jobs."""

import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from sqlalchemy import Connection

import spark_runs
from crashes.spark.cells import Job
from crashes.spark.sinks import Recorder, SlowStore
from eventhub_checkpoints import Scope
from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import CheckpointPublisher, ExactlyOnce
from waiting import LIMIT

POLL_SECONDS = 0.1
SIDE_BY_SIDE = 2

Sink = Callable[[DataFrame, int], None]


def with_publisher(spark: SparkSession, job: Job, scope: Scope, opened: ExitStack) -> Sink:
    """Return the sink of a query whose positions a publisher writes to the store."""
    store = opened.enter_context(SlowStore(job.url))
    publisher = CheckpointPublisher(store, scope, query_name=job.name)
    opened.enter_context(publisher)
    publisher.catch_up(job.checkpoint)
    publisher.attach(spark)

    def slow_down(left: int | None) -> None:
        store.left = left

    recorder = Recorder(job, slow_down)

    def sink(batch: DataFrame, batch_id: int) -> None:
        recorder.at("begin", batch_id)
        if job.route == "flushed publisher":
            publisher.flush(LIMIT)
        recorder.append(batch.select("partition", "sequenceNumber").collect(), batch_id)
        recorder.at("end", batch_id)

    return sink


def exactly_once(job: Job, scope: Scope, opened: ExitStack) -> tuple[Sink, dict[str, str]]:
    """Return a sink that writes results and positions in one transaction, and its start."""
    recorder = Recorder(job, lambda left: None)
    under_way: list[int] = []

    def write(connection: Connection, rows: Sequence[Row]) -> None:
        recorder.write(connection, rows, under_way[-1])

    once = opened.enter_context(ExactlyOnce(job.url, scope, write))

    def sink(batch: DataFrame, batch_id: int) -> None:
        under_way.append(batch_id)
        recorder.at("begin", batch_id)
        once(batch, batch_id)
        recorder.at("end", batch_id)

    return sink, once.starting_positions(hub=job.hub).to_source()


def prepared(spark: SparkSession, job: Job, opened: ExitStack) -> DataStreamWriter:
    """Return the query of a job, ready to be started."""
    scope = HubAddress.from_connection_string(job.hub, job.name).scope()
    if job.route == "exactly once":
        sink, begin = exactly_once(job, scope, opened)
    else:
        sink, begin = with_publisher(spark, job, scope, opened), {"checkpointStore": job.url}
    limit = {"maxEventsPerTrigger": str(job.limit)} if job.death else {}
    trigger: dict[str, Any] = (
        {"processingTime": "0 seconds"} if job.death else {"availableNow": True}
    )
    hub = {"connectionString": job.hub, "consumerGroup": job.name, "receivePath": job.receive_path}
    events = spark.readStream.format("eventhubs").options(**hub, **begin, **limit).load()
    writer = events.writeStream.queryName(job.name).foreachBatch(sink).trigger(**trigger)
    return writer.option("checkpointLocation", str(job.checkpoint))


def go_on(spark: SparkSession, job: Job, opened: ExitStack) -> None:
    """Run a query until it waits to be killed, or has read what is there.

    Raises:
        StreamingQueryException: it failed.
    """
    writer = prepared(spark, job, opened)
    spark_runs.run_to_the_end(lambda: wait(writer.start(), job))


def wait(query: StreamingQuery, job: Job) -> None:
    """Wait until a query waits to be killed, or ends; raise its error."""
    while query.isActive:
        if job.death and job.waiting.exists():
            return
        time.sleep(POLL_SECONDS)
    query.awaitTermination()


def go_on_together(spark: SparkSession, jobs: Sequence[Job], opened: ExitStack) -> None:
    """Run the queries until each waits to be killed, or has read what is there."""
    # Not all at once: each query starts Python processes.
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for _ in pool.map(lambda job: go_on(spark, job, opened), jobs):
            pass


def run(jobs: Sequence[Job], folder: Path) -> None:
    """Run the queries in a session of their own; wait to be killed if they do."""
    with (
        spark_runs.session(settings=spark_runs.killable(folder)) as spark,
        ExitStack() as opened,
    ):
        go_on_together(spark, jobs, opened)
        if any(job.death for job in jobs):
            threading.Event().wait()


def main() -> None:
    """Run the jobs of the file named on the command line."""
    given = Path(sys.argv[1])
    try:
        run(pickle.loads(given.read_bytes()), given.parent)
    except Exception:
        # Put the traceback at the end of the log, after Spark's shutdown messages.
        time.sleep(1)
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
