"""Records of Kafka as columns.

Kafka's offset is the sequence number. What that protocol does not have stays null: the opaque
offset and the publisher. A record without a value has an empty body.
"""

from collections.abc import Sequence
from typing import cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.amqp.decoder.values import as_text
from eventhub_checkpoints.receive.kafka.headers import HeaderReader, Headers


def columns_of(messages: Sequence[Message], reader: HeaderReader) -> Columns:
    """The records as columns, a row each, in their order."""
    nothing = [None] * len(messages)
    properties, systems = reader.maps(
        cast("Headers", message.headers() or ()) for message in messages
    )
    return Columns(
        numbers=[message.offset() or 0 for message in messages],
        bodies=[message.value() or b"" for message in messages],
        offsets=[*nothing],
        enqueued=[
            None if kind == TIMESTAMP_NOT_AVAILABLE else time
            for kind, time in [message.timestamp() for message in messages]
        ],
        publishers=[*nothing],
        partition_keys=[
            None if key is None else as_text(key) for key in [one.key() for one in messages]
        ],
        properties=properties,
        systems=systems,
    )
