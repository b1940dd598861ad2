"""The sink for batches and micro-batches: checks on the driver, and what a task does."""

import inspect
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import nearest
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.send.amqp.sender import HubSender
from eventhub_checkpoints.send.arrow import (
    COLUMNS,
    check_names,
    check_type,
    read_rows,
    stating_progress,
)
from eventhub_checkpoints.send.events import EventRows
from eventhub_checkpoints.send.sender import Sender
from eventhub_checkpoints.spark.kept_connections import KeptConnections
from eventhub_checkpoints.spark.sink.keys import ContentKeys, with_keys
from eventhub_checkpoints.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import Row

log = logging.getLogger(__name__)

WriterCommitMessage = datasource.WriterCommitMessage
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a streaming query's tasks. Source: Spark 4.0, `StreamExecution.scala`."""

ROWS_AT_ONCE = 10_000
"""Rows that are converted at once where Spark hands over rows and not Arrow batches."""


@dataclass(frozen=True)
class SentEvents(WriterCommitMessage):
    """What a task has sent; the hub has confirmed it."""

    count: int


class Writing:
    """Sends the rows of each task; pickled, and sent to the executors.

    Args:
        options: of the sink, by name.
        schema: of the rows.

    Raises:
        ConfigurationError: an option or a column cannot be used.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = SinkOptions.parse(options)
        self._names, self._types = check_columns(schema, self._options.keys.column)
        self._job = uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options.address})"

    def send(self, batches: Iterable[pa.RecordBatch]) -> SentEvents:
        """Send the rows of a task and wait for the hub's confirmation; runs on an executor."""
        keys = self._options.keys
        contents = ContentKeys(self._scope()) if keys.by_content else None
        with SENDERS.lent(self._options) as sender:
            before = sender.accepted
            with stating_progress(sender):
                for batch in batches:
                    sender.send(self._rows(batch.rename_columns(self._names), contents))
                sender.flush()
            return SentEvents(sender.accepted - before)

    def send_rows(self, rows: "Iterator[Row]") -> SentEvents:
        """Send rows that Spark hands over one by one."""
        return self.send(self._batches(rows))

    def _batches(self, rows: "Iterator[Row]") -> Iterator[pa.RecordBatch]:
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            columns = zip(*chunk, strict=True)
            arrays = [
                pa.array([as_arrow(value) for value in values], kind)
                for values, kind in zip(columns, self._types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, self._names)

    def _rows(self, batch: pa.RecordBatch, contents: ContentKeys | None) -> EventRows:
        column = self._options.keys.column
        if not column:
            rows = read_rows(batch)
            return rows if contents is None else with_keys(rows, contents.of(rows))
        at = self._names.index(column)
        keys: list[str | None] = batch.column(at).to_pylist()
        return with_keys(read_rows(batch.drop_columns([column])), keys)

    def _scope(self) -> str:
        """Return what equal rows must share to have equal keys: query, batch and partition."""
        task = TaskContext.get()
        assert task is not None
        scope = self._options.keys.scope
        query, batch = task.getLocalProperty(QUERY), task.getLocalProperty(BATCH)
        if query and batch:
            scope = f"{scope or query}/{batch}"
        return f"{scope or self._job}/{task.partitionId()}"


class BatchWriter(DataSourceArrowWriter):
    """Writer of `df.write`."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SentEvents:
        """Send the rows of a task."""
        return self._writing.send(iterator)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log what other tasks have sent."""
        log_sent(messages)


TAKES_ARROW = hasattr(datasource, "DataSourceStreamArrowWriter")
"""Since PySpark 4.1; before, Spark hands over rows."""
STREAM_WRITER: Any = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)


class StreamWriter(STREAM_WRITER):  # type: ignore[misc]  # its class depends on PySpark
    """Writer of `writeStream`."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[Any]) -> SentEvents:
        """Send the rows of a task."""
        return self._writing.send(iterator) if TAKES_ARROW else self._writing.send_rows(iterator)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Log what other tasks have sent."""
        del batchId
        log_sent(messages)


def log_sent(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Log what was sent by a job that failed: a hub cannot take it back."""
    count = sum(each.count for each in messages if isinstance(each, SentEvents))
    if count:
        log.warning(
            "the job failed after %s events of finished tasks were sent; they are in the hub, and "
            "if the job is repeated they are sent again",
            f"{count:,}",
        )


def check_columns(schema: StructType, key_column: str) -> tuple[list[str], list[pa.DataType]]:
    """Return the names of the columns as events have them, and their types.

    Spark's names are in any case. Types are converted after the names are known: a column that is
    not sent may have a type that Arrow does not have.

    Raises:
        ConfigurationError: a column is missing, unknown, there twice, or of another type.
    """
    if key_column in COLUMNS:
        raise ConfigurationError(
            f"keyColumn is {key_column}, which is a column of events; use another name"
        )
    spelled = {name.lower(): name for name in (key_column, *COLUMNS)}
    names = [spelled.get(field.name.lower(), field.name) for field in schema.fields]
    if key_column and key_column not in names:
        others = [name for name in names if name not in COLUMNS]
        meant = nearest(key_column, others)
        raise ConfigurationError(
            f"keyColumn is {quoted(key_column)}, and the rows have no such column; "
            + (f"did you mean {meant}?" if meant else f"they have {', '.join(names)}")
        )
    check_names([name for name in names if name != key_column])
    types: list[pa.DataType] = []
    for name, field in zip(names, schema.fields, strict=True):
        kind = arrow_type(field.dataType)
        if name == key_column and kind != pa.string():
            raise ConfigurationError(
                f"keyColumn is {quoted(key_column)}, which is of the type "
                f"{field.dataType.simpleString()}; expected a column of strings: cast it"
            )
        if name != key_column:
            check_type(name, field.dataType.simpleString() if kind is None else kind)
        types.append(kind)
    return names, types


TAKES_TIME_ZONE = "timezone" in inspect.signature(to_arrow_type).parameters
TIME_ZONE: Mapping[str, Any] = {"timezone": "UTC"} if TAKES_TIME_ZONE else {}
"""PySpark 4.3 needs it for a type of times; PySpark 4.0 does not know it, and always uses UTC."""


def arrow_type(kind: DataType) -> pa.DataType | None:
    """Return the type in Arrow; None if it has none, such as for an interval of the calendar."""
    try:
        return to_arrow_type(kind, **TIME_ZONE)
    except PySparkException:
        return None


def as_arrow(value: Any) -> Any:
    """Return a value of a row as Arrow accepts it."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime):
        # Spark's rows have times without a zone, in that of the process.
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return [(key, as_arrow(item)) for key, item in value.items()]
    return value


def new_sender(options: SinkOptions) -> Sender:
    """Return a sender for the transport of the address."""
    if isinstance(options.address, HubAddress):
        return HubSender(options.address, options.sending)
    from eventhub_checkpoints.receive.kafka.address import KafkaAddress
    from eventhub_checkpoints.send.kafka.sender import KafkaSender

    assert isinstance(options.address, KafkaAddress)
    return KafkaSender(options.address, options.sending)


REPLACED_AFTER = 300.0
"""Seconds after which a connection is replaced, so that new partitions are found."""

SENDERS = KeptConnections(new_sender, REPLACED_AFTER)
"""Senders with everything confirmed, by the options of the sink."""
