"""`spark.read.format("eventhubs")`: a batch of a hub in pure Python, on Spark 4.

Spark creates these objects in processes of its own, one after another and from text options
only. So nothing is opened in a constructor, the driver decides what is read (`partitions`), and
a task is told the exact range and the hub.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from eventhub_checkpoints.errors import ConfigurationError, MissingDriverError
from eventhub_checkpoints.receive.address import HubAddress
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.ranges import PartitionRange, ReadSettings
from eventhub_checkpoints.spark.options import SourceOptions
from eventhub_checkpoints.spark.planning import plan_ranges

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ImportError as error:
    raise MissingDriverError.of_extra("format('eventhubs')", "spark") from error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

COLUMNS = {
    "body": "binary",
    "partition": "string",
    "offset": "string",
    "sequenceNumber": "bigint",
    "enqueuedTime": "timestamp",
    "publisher": "string",
    "partitionKey": "string",
    "properties": "map<string,string>",
    "systemProperties": "map<string,string>",
}
"""Name and type of each column, as in the JVM connector."""


class EventHubSource(DataSource):
    """Event Hubs as a source of Spark 4, short name `eventhubs`.

    An installed package is found by Spark without being registered; elsewhere:
    `spark.dataSource.register(EventHubSource)`.

    Raises:
        ConfigurationError: an option is unknown or unusable; said by `load()` already.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = SourceOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        """The short name, as in the JVM connector."""
        return "eventhubs"

    def schema(self) -> str:
        """The nine columns."""
        return ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

    def reader(self, schema: "StructType") -> "EventHubBatchReader":
        """A reader of one batch.

        Raises:
            ConfigurationError: a schema of one's own was given.
        """
        asked = {field.name: field.dataType.simpleString() for field in schema.fields}
        if asked != COLUMNS:
            raise ConfigurationError(
                f"format('eventhubs') has the columns {', '.join(COLUMNS)}; leave out .schema(...)"
            )
        return EventHubBatchReader(self._parsed)

    def writer(self, schema: "StructType", overwrite: bool) -> NoReturn:
        """Nothing is written.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(
            "format('eventhubs') only reads; send events with azure-eventhub's "
            "EventHubProducerClient, or write through Spark's Kafka sink"
        )


@dataclass(frozen=True, repr=False)
class RangeTask(InputPartition):
    """What one Spark task reads. Its `repr` comes into logs and shows no secret."""

    address: HubAddress
    wanted: PartitionRange
    settings: ReadSettings

    def __repr__(self) -> str:
        return f"RangeTask({self.address}, {self.wanted})"


class EventHubBatchReader(DataSourceReader):
    """One task per partition that has anything to read, each an exact range."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Decide, on the driver, which events are read.

        Raises:
            DataLossError: the job starts before the first retained event or behind the end.
            ConfigurationError: a position does not fit the hub.
        """
        options = self._options
        return [
            RangeTask(options.address, wanted, options.reading) for wanted in plan_ranges(options)
        ]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Read one range, on an executor."""
        # Spark runs one task without a range of ours where there is nothing to read.
        if isinstance(partition, RangeTask):
            yield from read_range(partition.address, partition.wanted, partition.settings)
