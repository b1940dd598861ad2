"""Query from hub to hub and the driver that runs it.

python -m crashes.sink.pipeline run WAY FOLDER SOURCE TARGET
python -m crashes.sink.pipeline finish WAY FOLDER SOURCE TARGET
python -m crashes.sink.pipeline deduplicate WAY FOLDER TARGET
"""

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql.streaming.query import StreamingQuery

import spark_runs
from crashes.sink.rows import Way
from eventhub_checkpoints.spark.sink import deduplicate

EVENTS_PER_BATCH = "300"
READ_PER_BATCH = "200"
WITHIN = "1 hour"
TOKEN = "fail-a-task"
QUERY, READ = "query", "read"
"""Folders of the checkpoint, and of what was read without copies."""


SMALL_PIECES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
    "spark.sql.execution.python.udf.maxRecordsPerBatch": "10",
}
"""Settings with which a task has sent some of its rows when it fails."""
FAILS_AT = 31


def failing(folder: str) -> Callable[[str], str]:
    """Return a function that returns its argument; in row `FAILS_AT` of a task it may fail.

    It fails if there is a token, and removes that.
    """
    rows = itertools.count(1)

    def passed(body: str) -> str:
        if next(rows) == FAILS_AT:
            with suppress(FileNotFoundError):
                (Path(folder) / TOKEN).unlink()
                raise RuntimeError("this task was chosen to fail")
        return body

    return passed


def failable(rows: DataFrame, folder: Path) -> DataFrame:
    """Return rows of a body and a key as the target has them."""
    passed = F.udf(failing(str(folder)), "string", useArrow=False)
    return rows.select(passed("body").alias("body"), F.col("key").alias("partitionKey"))


def started(
    spark: SparkSession, way: Way, source: str, target: str, folder: Path, **trigger: Any
) -> StreamingQuery:
    """Start the query; it continues from the checkpoint in the folder."""
    options = {"connectionString": target, "eventKeys": "content", "bytesPerBatch": "2000"}
    events = (
        spark.readStream.format("eventhubs")
        .options(connectionString=source, maxEventsPerTrigger=EVENTS_PER_BATCH)
        .load()
    )
    body = F.col("body").cast("string")
    keyed = events.select(body.alias("body"), F.substring_index(body, "/", 1).alias("key"))
    if way == "aggregated":
        number = F.substring_index("body", "/", -1).cast("long")
        totals = keyed.groupBy("key").agg(F.count("*").alias("count"), F.sum(number).alias("sum"))

        def send(batch: DataFrame, batch_id: int) -> None:
            rows = batch.select(F.concat_ws(":", "key", "count", "sum").alias("body"), "key")
            target = failable(rows, folder).write.format("eventhubs").options(**options)
            target.mode("append").save()

        writer = totals.writeStream.foreachBatch(send).outputMode("update")
    else:
        writer = failable(keyed, folder).writeStream.format("eventhubs").options(**options)
    return writer.option("checkpointLocation", str(folder / QUERY)).trigger(**trigger).start()


def run(
    spark: SparkSession, way: Way, hubs: Sequence[str], folder: Path, trigger: dict[str, Any]
) -> None:
    """Run the query from its checkpoint until it ends.

    Raises:
        StreamingQueryException: it failed.
    """
    source, target = hubs
    spark_runs.run_to_the_end(
        lambda: started(spark, way, source, target, folder, **trigger).awaitTermination()
    )


def read_once(spark: SparkSession, target: str, folder: Path) -> None:
    """Read the rest of the target hub without copies; each micro-batch replaces its own file."""
    (folder / READ).mkdir(exist_ok=True)

    def sink(batch: DataFrame, batch_id: int) -> None:
        bodies = [bytes(row.body).decode() for row in batch.select("body").collect()]
        written = folder / f"{batch_id}.json"
        written.write_text(json.dumps(bodies))
        written.rename(folder / READ / written.name)

    events = (
        spark.readStream.format("eventhubs")
        .options(connectionString=target, maxEventsPerTrigger=READ_PER_BATCH)
        .load()
    )
    writer = deduplicate(events, WITHIN).writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(folder / "reader")).trigger(availableNow=True)
    writer.start().awaitTermination()


def read_bodies(folder: Path) -> list[str]:
    """Return the bodies that all runs of `read_once` have read."""
    files = (folder / READ).glob("*.json")
    return [body for file in files for body in json.loads(file.read_text())]


def main() -> None:
    """Run what the command line says."""
    task, way, path, *hubs = sys.argv[1:]
    folder = Path(path)
    # A task that fails, or whose worker is killed, is tried again.
    settings = {
        "spark.master": "local[2,8]",
        # The judge has to know what each micro-batch has read.
        "spark.sql.streaming.minBatchesToRetain": "1000000",
        **SMALL_PIECES,
    }
    with spark_runs.session(settings=spark_runs.killable(folder) | settings) as spark:
        if task == "deduplicate":
            read_once(spark, hubs[0], folder)
            return
        trigger: dict[str, Any] = (
            {"availableNow": True} if task == "finish" else {"processingTime": "0 seconds"}
        )
        run(spark, cast("Way", way), hubs, folder, trigger)


if __name__ == "__main__":
    main()
