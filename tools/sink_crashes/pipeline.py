"""Query from hub to hub and the driver that runs it.

python -m sink_crashes.pipeline run SOURCE TARGET FOLDER
python -m sink_crashes.pipeline finish SOURCE TARGET FOLDER
python -m sink_crashes.pipeline deduplicate TARGET FOLDER
"""

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql.streaming.query import StreamingQuery

import spark_runs
from eventhub_checkpoints.spark.sink import deduplicate

EVENTS_PER_BATCH = "300"
WITHIN = "1 hour"
TOKEN = "fail-a-task"
RESULT = "deduplicated.json"


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


Way = Literal["aggregated", "stream"]
WAYS: tuple[Way, ...] = get_args(Way)
"""With an aggregation, which Spark allows a Python sink only in `foreachBatch`; or directly."""


def renamed(rows: DataFrame, folder: Path) -> DataFrame:
    """Return the rows of the target: the name of an event, and how often it was counted."""
    body = F.concat_ws(":", "name", F.col("count").cast("string"))
    return rows.select(
        F.udf(failing(str(folder)), "string", useArrow=False)(body).alias("body"),
        F.substring_index("name", "/", 1).alias("partitionKey"),
    )


def started(
    spark: SparkSession, way: str, source: str, target: str, folder: Path, **trigger: Any
) -> StreamingQuery:
    """Start the query; it continues from the checkpoint in the folder."""
    options = {"connectionString": target, "eventKeys": "content", "bytesPerBatch": "2000"}
    events = (
        spark.readStream.format("eventhubs")
        .options(connectionString=source, maxEventsPerTrigger=EVENTS_PER_BATCH)
        .load()
    )
    names = events.select(F.col("body").cast("string").alias("name"))
    if way == "aggregated":

        def send(batch: DataFrame, batch_id: int) -> None:
            rows = renamed(batch, folder)
            rows.write.format("eventhubs").options(**options).mode("append").save()

        writer = names.groupBy("name").count().writeStream.foreachBatch(send).outputMode("update")
    else:
        once = names.withColumn("count", F.lit(1))
        writer = renamed(once, folder).writeStream.format("eventhubs").options(**options)
    return writer.option("checkpointLocation", str(folder / "query")).trigger(**trigger).start()


STARTS = 20


def run(
    spark: SparkSession, way: str, hubs: Sequence[str], folder: Path, trigger: dict[str, Any]
) -> None:
    """Run the query from its checkpoint until it ends.

    Raises:
        StreamingQueryException: it failed.
    """
    source, target = hubs
    for left in reversed(range(STARTS)):
        try:
            started(spark, way, source, target, folder, **trigger).awaitTermination()
        except StreamingQueryException as error:
            # Spark gives its Python processes 10 s to start, which a busy machine may exceed.
            if "failed to connect back" not in str(error) or not left:
                raise
        else:
            return


def read_once(spark: SparkSession, target: str, folder: Path) -> list[str]:
    """Return the bodies in the target hub as a stream reads them, without copies."""
    bodies: list[str] = []

    def sink(batch: DataFrame, batch_id: int) -> None:
        bodies.extend(bytes(row.body).decode() for row in batch.select("body").collect())

    events = (
        spark.readStream.format("eventhubs")
        .options(connectionString=target, maxEventsPerTrigger="5000")
        .load()
    )
    query = deduplicate(events, WITHIN).writeStream.foreachBatch(sink)
    checkpoint = str(folder / "reader")
    query.option("checkpointLocation", checkpoint).trigger(
        availableNow=True
    ).start().awaitTermination()
    return bodies


def main() -> None:
    """Run what the command line says."""
    task, way, path, *hubs = sys.argv[1:]
    folder = Path(path)
    # A task that fails, or whose worker is killed, is tried again.
    settings = {"spark.master": "local[2,8]", "spark.local.dir": path, **SMALL_PIECES}
    with spark_runs.session(settings=spark_runs.QUICK | settings) as spark:
        if task == "deduplicate":
            (folder / RESULT).write_text(json.dumps(read_once(spark, hubs[0], folder)))
            return
        trigger: dict[str, Any] = (
            {"availableNow": True} if task == "finish" else {"processingTime": "0 seconds"}
        )
        run(spark, way, hubs, folder, trigger)


if __name__ == "__main__":
    main()
