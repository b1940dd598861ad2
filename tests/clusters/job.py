"""A user's job: a batch and a stream from the checkpoints on, and where each row was read."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

OPTIONS = {"connectionString": "env:HUB", "checkpointStore": "env:STORE"}
WHERE = "partition string, number long, executor string, package string"


def where(batches):
    """Runs in the tasks that read the hub; each executor works in a folder of its own."""
    import pyarrow as pa

    import eventhub_checkpoints

    here, package = str(Path.cwd()), str(Path(eventhub_checkpoints.__file__).absolute())
    for batch in batches:
        count = batch.num_rows
        columns = [*batch.columns, pa.array([here] * count), pa.array([package] * count)]
        yield pa.RecordBatch.from_arrays(columns, ["partition", "number", "executor", "package"])


def read(frame):
    numbered = frame.selectExpr("partition", "sequenceNumber as number")
    return [tuple(row) for row in numbered.mapInArrow(where, WHERE).collect()]


def stream(spark):
    found = []
    events = spark.readStream.format("eventhubs").options(**OPTIONS, maxEventsPerTrigger="30")
    query = (
        events.load()
        .writeStream.foreachBatch(lambda frame, _: found.append(read(frame)))
        .option("checkpointLocation", str(Path("query").absolute()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    batch = read(spark.read.format("eventhubs").options(**OPTIONS).load())
    Path("read.json").write_text(json.dumps({"batch": batch, "stream": stream(spark)}))
    spark.stop()
