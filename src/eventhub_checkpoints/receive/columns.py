"""Events as the nine columns of the JVM connector, so that a job can change its source.

Text of a property is kept as it is; any other value becomes JSON, see `values`.

Source: azure-event-hubs-spark 2.3.22, `sql/eventhubs/EventHubsSourceProvider.scala`,
`toInternalRow`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpMessageBodyType

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.values import as_text, as_texts

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
DATA, SEQUENCE = AmqpMessageBodyType.DATA, AmqpMessageBodyType.SEQUENCE


def record_batch(
    partition_id: str, events: Sequence[EventData], bodies: Sequence[bytes] | None = None
) -> pa.RecordBatch:
    """One Arrow batch with a row per event.

    Args:
        partition_id: which partition they are from.
        events: in their order.
        bodies: what `body_bytes` gives for each, where that is known already.
    """
    messages = [event.raw_amqp_message for event in events]
    annotations = [message.annotations or {} for message in messages]
    columns: list[Iterable[Any]] = [
        [body_bytes(event) for event in events] if bodies is None else bodies,
        [partition_id] * len(events),
        [as_text(found.get(OFFSET)) for found in annotations],
        [found.get(SEQUENCE_NUMBER) for found in annotations],
        [microseconds(found.get(ENQUEUED_TIME)) for found in annotations],
        [as_text(found.get(PUBLISHER)) for found in annotations],
        [as_text(found.get(PARTITION_KEY)) for found in annotations],
    ]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=False)]
    arrays.append(text_maps(message.application_properties for message in messages))
    arrays.append(text_maps(map(system_properties, events)))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def body_bytes(event: EventData) -> bytes:
    """The payload: data sections joined; an AMQP value as its text or its JSON."""
    message = event.raw_amqp_message
    kind, body = message.body_type, message.body
    if kind is DATA:
        return body if isinstance(body, bytes) else b"".join(body)
    if kind is SEQUENCE:
        body = list(body)
    if isinstance(body, bytes):
        return body
    return (as_text(body) or "").encode()


def microseconds(milliseconds: int | None) -> int | None:
    """AMQP's unit of time in Spark's."""
    return None if milliseconds is None else milliseconds * 1000


def system_properties(event: EventData) -> Mapping[Any, Any]:
    """Those that have no column of their own."""
    message = event.raw_amqp_message
    if message.properties is None and (message.annotations or {}).keys() <= IN_OTHER_COLUMNS:
        # Most events: the client would copy the annotations, and here all would be dropped.
        return {}
    found: Mapping[Any, Any] = event.system_properties
    return {key: value for key, value in found.items() if key not in IN_OTHER_COLUMNS}


def text_maps(maps: Iterable[Mapping[Any, Any] | None]) -> pa.MapArray:
    """Maps as a column; the texts of all of them go to Arrow at once."""
    ends = [0]
    keys: list[Any] = []
    values: list[Any] = []
    for one in maps:
        if one:
            keys += one.keys()
            values += one.values()
        ends.append(len(keys))
    texts = (pa.array(as_texts(each), pa.string()) for each in (keys, values))
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), *texts)
