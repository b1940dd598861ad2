"""Arrow schema of the JVM connector's nine columns, so that a job can change its source."""

from collections.abc import Sequence

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns, Text, TextMaps

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

MILLISECONDS = pa.timestamp("ms", tz="UTC")
STRING_MAP = pa.map_(pa.string(), pa.string())

SCHEMA = pa.schema(
    [
        ("body", pa.binary()),
        ("partition", pa.string()),
        ("offset", pa.string()),
        ("sequenceNumber", pa.int64()),
        ("enqueuedTime", pa.timestamp("us", tz="UTC")),
        ("publisher", pa.string()),
        ("partitionKey", pa.string()),
        ("properties", STRING_MAP),
        ("systemProperties", STRING_MAP),
    ]
)
"""Equal to the schema that Spark 4 derives from the source's columns; it compares exactly."""


def record_batch(partition_id: str, columns: Columns) -> pa.RecordBatch:
    """Return an Arrow batch with one row per event of a partition."""
    arrays = [
        pa.array(columns.bodies, pa.binary()),
        pa.repeat(pa.scalar(partition_id, pa.string()), len(columns)),
        text_array(columns.offsets),
        pa.array(columns.numbers, pa.int64()),
        pa.array(columns.enqueued, MILLISECONDS).cast(SCHEMA.field("enqueuedTime").type),
        text_array(columns.publishers),
        text_array(columns.partition_keys),
        map_array(columns.properties),
        map_array(columns.systems),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def text_array(texts: Sequence[Text | None]) -> pa.StringArray:
    """Return strings as an Arrow array."""
    # Twice as fast as passing strings, which would first decode UTF-8 to Python strings.
    return pa.array(texts, pa.binary()).cast(pa.string())


def map_array(maps: TextMaps) -> pa.MapArray:
    """Return maps as an Arrow array."""
    keys, values = text_array(maps.keys), text_array(maps.values)
    return pa.MapArray.from_arrays(pa.array(maps.ends, pa.int32()), keys, values)
