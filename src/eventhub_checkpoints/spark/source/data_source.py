"""`format("eventhubs")`: data source for batches and streams in pure Python, on Spark 4.

Spark creates these objects several times, in different processes, and from string options only.
Therefore constructors open nothing, the driver decides what is read (`partitions`), and a task
contains the hub and its exact ranges.
"""

import logging
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.columns import column_types
from eventhub_checkpoints.spark.source.batches import make_tasks, plan_batch, read_task
from eventhub_checkpoints.spark.source.options import ENDINGS, STREAM_ONLY, SourceOptions
from eventhub_checkpoints.spark.source.stream import EventHubStreamReader, RefusedStreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from eventhub_checkpoints.spark.sink.writer import BatchWriter, StreamWriter

log = logging.getLogger(__name__)


class EventHubSource(DataSource):
    """Data source and sink for Event Hubs on Spark 4, short name `eventhubs`.

    Spark finds an installed package without registration; otherwise call
    `spark.dataSource.register(EventHubSource)`.

    Raises:
        ConfigurationError: an option is unknown or unusable; raised by `load()`, `save()` and
            `start()` already.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return the short name, as in the JVM connector."""
        return "eventhubs"

    def schema(self) -> str:
        """Return the columns, as in the JVM connector.

        Raises:
            ConfigurationError: an option is unknown or unusable.
        """
        SourceOptions.parse(self.options)
        return ", ".join(f"{name} {kind}" for name, kind in column_types().items())

    def reader(self, schema: "StructType") -> "EventHubBatchReader":
        """Return a reader of one batch.

        Raises:
            ConfigurationError: the user has specified a schema.
        """
        check_columns(schema)
        options = SourceOptions.parse(self.options)
        if unused := sorted(options.names & set(STREAM_ONLY)):
            log.warning("%s: meant for streams, without effect on a batch", ", ".join(unused))
        return EventHubBatchReader(options)

    def streamReader(  # noqa: N802
        self, schema: "StructType"
    ) -> EventHubStreamReader | RefusedStreamReader:
        """Return a reader of a stream.

        It does not raise: Spark 4.3 would replace the error by an `UnboundLocalError`. Instead, the
        returned reader refuses a user-defined schema and ending positions.

        Source: pyspark 4.3.0, `sql/streaming/python_streaming_source_runner.py`, `main`.
        """
        try:
            check_columns(schema)
            options = SourceOptions.parse(self.options)
            if endings := sorted(options.names & set(ENDINGS)):
                raise ConfigurationError(
                    f"{', '.join(endings)}: a stream has no end; read a batch, or leave it out and "
                    "use .trigger(availableNow=True)"
                )
        except ConfigurationError as error:
            return RefusedStreamReader(error)
        return EventHubStreamReader(options)

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        """Return a writer of a batch.

        Raises:
            ConfigurationError: an option or a column cannot be used, or the mode is `overwrite`.
        """
        if overwrite:
            raise ConfigurationError(
                "the events of a hub cannot be overwritten; use mode('append')"
            )
        from eventhub_checkpoints.spark.sink import writer

        return writer.BatchWriter(writer.Writing(self.options, schema))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802
        """Return a writer of a stream; in the output mode `complete` each batch sends all rows.

        Raises:
            ConfigurationError: an option or a column cannot be used.
        """
        del overwrite
        from eventhub_checkpoints.spark.sink import writer

        return writer.StreamWriter(writer.Writing(self.options, schema))


def check_columns(schema: "StructType") -> None:
    """Refuse a user-defined schema, because the columns of events are fixed.

    Raises:
        ConfigurationError: the schema differs from `column_types`.
    """
    columns = column_types()
    if {field.name: field.dataType.simpleString() for field in schema.fields} != columns:
        raise ConfigurationError(
            f"format('eventhubs') has the columns {', '.join(columns)}; leave out .schema(...)"
        )


class EventHubBatchReader(DataSourceReader):
    """Reader of exact ranges, which are determined once, on the driver."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks of the batch; runs on the driver.

        Raises:
            DataLossError: the job starts before the first retained event or after the end.
            ConfigurationError: a position does not match the hub.
        """
        return make_tasks(self._options, plan_batch(self._options))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read the ranges of one task, on an executor."""
        return read_task(partition)
