"""The client's events as columns.

Text of a property is kept as it is; any other value becomes JSON, see `values`.

Source: azure-event-hubs-spark 2.3.22, `sql/eventhubs/EventHubsSourceProvider.scala`,
`toInternalRow`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpMessageBodyType

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns, TextMaps
from eventhub_checkpoints.receive.amqp.decoder.events import (
    ENQUEUED_TIME,
    IN_OTHER_COLUMNS,
    OFFSET,
    PARTITION_KEY,
    PUBLISHER,
    SEQUENCE_NUMBER,
)
from eventhub_checkpoints.receive.amqp.decoder.values import as_text, as_texts

DATA, SEQUENCE = AmqpMessageBodyType.DATA, AmqpMessageBodyType.SEQUENCE


def columns_of(events: Sequence[EventData]) -> Columns:
    """The events as columns, a row each, in their order."""
    messages = [event.raw_amqp_message for event in events]
    annotations = [message.annotations or {} for message in messages]
    return Columns(
        numbers=[found.get(SEQUENCE_NUMBER) or 0 for found in annotations],
        bodies=[body_bytes(event) for event in events],
        offsets=[as_text(found.get(OFFSET)) for found in annotations],
        enqueued=[found.get(ENQUEUED_TIME) for found in annotations],
        publishers=[as_text(found.get(PUBLISHER)) for found in annotations],
        partition_keys=[as_text(found.get(PARTITION_KEY)) for found in annotations],
        properties=text_maps(message.application_properties for message in messages),
        systems=text_maps(map(system_properties, events)),
    )


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


def system_properties(event: EventData) -> Mapping[Any, Any]:
    """Those that have no column of their own."""
    message = event.raw_amqp_message
    if message.properties is None and (message.annotations or {}).keys() <= IN_OTHER_COLUMNS:
        # Most events: the client would copy the annotations, and here all would be dropped.
        return {}
    found: Mapping[Any, Any] = event.system_properties
    return {key: value for key, value in found.items() if key not in IN_OTHER_COLUMNS}


def text_maps(maps: Iterable[Mapping[Any, Any] | None]) -> TextMaps:
    """Maps as a column; the texts of all of them are made at once."""
    ends = [0]
    keys: list[Any] = []
    values: list[Any] = []
    for one in maps:
        if one:
            keys += one.keys()
            values += one.values()
        ends.append(len(keys))
    return TextMaps(ends, as_texts(keys), as_texts(values))
