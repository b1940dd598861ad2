"""Events as the nine columns of the JVM connector, so that a job can change its source.

Text of a property is kept as it is; any other value becomes JSON, as the connector writes it.
Two things that the Python client no longer knows differ: an AMQP timestamp or enumeration is
its number, and a binary value that happens to be UTF-8 is its text.

Source: azure-event-hubs-spark 2.3.22, `sql/eventhubs/EventHubsSourceProvider.scala`,
`toInternalRow`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpMessageBodyType

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

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PUBLISHER = b"x-opt-publisher"
PARTITION_KEY = b"x-opt-partition-key"
IN_OTHER_COLUMNS = frozenset({SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME})


def record_batch(partition_id: str, events: Sequence[EventData]) -> pa.RecordBatch:
    """One Arrow batch with a row per event."""
    annotations = [event.raw_amqp_message.annotations or {} for event in events]
    columns: list[Iterable[Any]] = [
        [body_bytes(event) for event in events],
        [partition_id] * len(events),
        [as_text(found.get(OFFSET)) for found in annotations],
        [found.get(SEQUENCE_NUMBER) for found in annotations],
        [microseconds(found.get(ENQUEUED_TIME)) for found in annotations],
        [as_text(found.get(PUBLISHER)) for found in annotations],
        [as_text(found.get(PARTITION_KEY)) for found in annotations],
        [string_pairs(event.properties) for event in events],
        [system_pairs(event) for event in events],
    ]
    arrays = [pa.array(values, column.type) for values, column in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def body_bytes(event: EventData) -> bytes:
    """The payload: data sections joined; an AMQP value as its text or its JSON."""
    body: Any = event.body
    if event.body_type == AmqpMessageBodyType.DATA:
        return body if isinstance(body, bytes) else b"".join(body)
    if event.body_type == AmqpMessageBodyType.SEQUENCE:
        body = list(body)
    if isinstance(body, bytes):
        return body
    return (as_text(body) or "").encode()


def microseconds(milliseconds: int | None) -> int | None:
    """AMQP's unit of time in Spark's."""
    return None if milliseconds is None else milliseconds * 1000


def system_pairs(event: EventData) -> list[tuple[str, str | None]]:
    """The system properties that have no column of their own."""
    found: Mapping[Any, Any] = event.system_properties
    return string_pairs({key: value for key, value in found.items() if key not in IN_OTHER_COLUMNS})


def string_pairs(properties: Mapping[Any, Any] | None) -> list[tuple[str, str | None]]:
    """Properties as the pairs of a `map<string,string>`; a null value is JSON's `null`."""
    if not properties:
        return []
    return [(_text(key), _text(value)) for key, value in properties.items()]


def as_text(value: Any) -> str | None:
    """A value as a column's text; None stays null."""
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value that JSON can hold; bytes that are no text become signed bytes, as in Java."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return [byte - 256 if byte > 127 else byte for byte in bytes(value)]
    if isinstance(value, Mapping):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
