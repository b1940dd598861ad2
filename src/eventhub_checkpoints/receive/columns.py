"""The nine columns of the JVM connector in Arrow, so that a job can change its source."""

from collections.abc import Sequence

from eventhub_checkpoints._decoder.columns import Columns, TextMaps
from eventhub_checkpoints.errors import MissingDriverError

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "spark") from error

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
"""Equal to what Spark 4 derives from the source's columns; it compares exactly."""


def record_batch(partition_id: str, columns: Columns) -> pa.RecordBatch:
    """One Arrow batch with a row per event of a partition."""
    plain = (
        columns.bodies,
        [partition_id] * len(columns),
        columns.offsets,
        columns.numbers,
        microseconds(columns.enqueued),
        columns.publishers,
        columns.partition_keys,
    )
    arrays = [pa.array(values, kind) for values, kind in zip(plain, SCHEMA.types, strict=False)]
    arrays += [map_array(columns.properties), map_array(columns.systems)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def microseconds(milliseconds: Sequence[int | None]) -> list[int | None]:
    """AMQP's unit of time in Spark's."""
    return [None if one is None else one * 1000 for one in milliseconds]


def map_array(maps: TextMaps) -> pa.MapArray:
    """Maps in Arrow."""
    keys, values = pa.array(maps.keys, pa.string()), pa.array(maps.values, pa.string())
    return pa.MapArray.from_arrays(pa.array(maps.ends, pa.int32()), keys, values)
