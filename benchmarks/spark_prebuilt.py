"""A source in Python that asks nobody and computes nothing: what is left is the cost of Spark."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from benchmarks.spark_hub import BODY, shares, some
from benchmarks.spark_reads import Source
from eventhub_checkpoints.receive.batches import record_batch
from eventhub_checkpoints.receive.columns import Columns, TextMaps, column_types
from eventhub_checkpoints.receive.ranges import ROWS_PER_BATCH

NAME, LIMIT = "prebuilt", "maxEventsPerTrigger"


def prebuilt(partitions: int, events: int, properties: int = 0) -> Source:
    """Events that need not be received.

    Args:
        partitions: number of tasks.
        events: of all tasks together; a stream has as many in each micro-batch, if it has no limit.
        properties: of each event.
    """
    words = {"partitions": partitions, LIMIT: events, "properties": properties}
    options = {name: str(value) for name, value in words.items()}
    return Source(lambda reader, more: reader.format(NAME).options(**options | more).load(), LIMIT)


class Prebuilt(DataSource):
    """Source of events that are made once a task, as Arrow batches of the size of a hub's."""

    @classmethod
    def name(cls) -> str:
        """Return the short name."""
        return NAME

    def schema(self) -> str:
        """Return the columns of a hub."""
        return ", ".join(f"{name} {kind}" for name, kind in column_types().items())

    def _tasks(self) -> "Tasks":
        options = (int(self.options[name]) for name in ("partitions", LIMIT, "properties"))
        return Tasks(*options)

    def reader(self, schema: Any) -> "BatchReader":
        """Return a reader of one batch."""
        return BatchReader(self._tasks())

    def streamReader(self, schema: Any) -> "StreamReader":  # noqa: N802
        """Return a reader of a stream."""
        return StreamReader(self._tasks())


class Tasks:
    """What the tasks of a batch read."""

    def __init__(self, partitions: int, events: int, properties: int) -> None:
        self._partitions, self._events, self._properties = partitions, events, properties

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each partition."""
        return [InputPartition(count) for count in shares(self._events, self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the same batch again and again."""
        rows = min(partition.value, ROWS_PER_BATCH)
        pairs = [some(self._properties)] * rows
        columns = Columns(
            bodies=[BODY] * rows,
            offsets=[str(row) for row in range(rows)],
            numbers=[*range(rows)],
            enqueued=[*range(rows)],
            publishers=[None] * rows,
            partition_keys=[None] * rows,
            properties=TextMaps.of(pairs),
            systems=TextMaps.of([None] * rows),
        )
        batch = record_batch("0", columns)
        for left in range(partition.value, 0, -rows):
            yield batch.slice(0, left)


class BatchReader(DataSourceReader):
    """Reader of one batch."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each partition."""
        return self._tasks.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a task."""
        return self._tasks.read(partition)


class StreamReader(DataSourceStreamReader):
    """Reader of a stream that always has something new."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._batches = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the start."""
        return {"batch": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """Return the end of one batch more."""
        self._batches += 1
        return {"batch": self._batches}

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """Return a task for each partition."""
        return self._tasks.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the events of a task."""
        return self._tasks.read(partition)
