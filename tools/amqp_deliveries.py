"""AMQP deliveries as a peer may send them: whole or in parts, with other frames in between."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload

from amqp_spelling import Spelling
from eventhub_checkpoints.amqp.messages import Message
from eventhub_checkpoints.amqp.performatives import EMPTY_FRAME, Flow, Transfer, encode_frame
from eventhub_checkpoints.amqp.types import Timestamp
from eventhub_checkpoints.receive.amqp.decoder import Deliveries
from eventhub_checkpoints.receive.amqp.decoder.events import read_event
from eventhub_checkpoints.receive.amqp.decoder.rows import EventRows
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from eventhub_checkpoints.receive.columns import Text

CHANNEL, HANDLE = 1, 0
MAX_FRAME_SIZE = 65536
FLOW = encode_frame(Flow(), CHANNEL)
FOREIGN = encode_frame(Transfer(handle=7, delivery_id=1, delivery_tag=b"t"), CHANNEL, b"other")


def frames_of(payload: bytes, delivery_id: int, parts: int = 1, **fields: Any) -> list[bytes]:
    """Return the transfer frames of one delivery."""
    size = max(1, -(-len(payload) // parts), 1)
    cuts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
    return [
        encode_frame(
            Transfer(
                handle=HANDLE,
                delivery_id=delivery_id if place == 0 else None,
                delivery_tag=delivery_id.to_bytes(4, "big") if place == 0 else None,
                message_format=0 if place == 0 else None,
                more=place < len(cuts) - 1,
                **{"settled": True, **fields},
            ),
            CHANNEL,
            cut,
        )
        for place, cut in enumerate(cuts)
    ]


def disturbed(payloads: Sequence[bytes], chance: Random, first: int = 0) -> list[bytes]:
    """Return the frames of many deliveries, mixed with heartbeats, foreign and aborted frames."""
    found: list[bytes] = []
    for delivery_id, payload in enumerate(payloads, first):
        needed = -(-len(payload) // (MAX_FRAME_SIZE - 512))
        parts = needed if chance.random() < 0.9 else needed + chance.randrange(1, 4)
        for frame in frames_of(payload, delivery_id, max(parts, 1)):
            found.append(frame)
            if chance.random() < 0.05:
                found.append(chance.choice([EMPTY_FRAME, FLOW, FOREIGN]))
        if chance.random() < 0.01:
            found += frames_of(b"never", delivery_id, aborted=True)
    return found


def pieces(data: bytes, chance: Random, largest: int = 300_000) -> Iterator[bytes]:
    """Yield the data in pieces of random size."""
    at = 0
    while at < len(data):
        end = at + chance.choice([chance.randrange(1, 100), chance.randrange(1, largest)])
        yield data[at:end]
        at = end


def client_columns(payloads: Sequence[bytes]) -> Columns:
    """Return the columns that the azure-eventhub client's decoder and the public path produce."""
    return columns_of(
        [EventData._from_message(decode_payload(memoryview(one))) for one in payloads]
    )


def new_link() -> Deliveries:
    """Return a link that receives everything that this module creates."""
    return Deliveries(channel=CHANNEL, handle=HANDLE, max_frame_size=MAX_FRAME_SIZE)


def payload(
    number: int, body: bytes = b"body", annotations: dict[str, object] | None = None, **parts: Any
) -> bytes:
    """Return an event as the service delivers it."""
    known = {"x-opt-sequence-number": number, "x-opt-offset": str(number * 10)}
    known["x-opt-enqueued-time"] = Timestamp(1795255200000 + number)
    given = {"data": [body], **parts}
    return Message(message_annotations={**known, **(annotations or {})}, **given).encode()


def mixed_payloads(seed: int, count: int, producers: int, first: int = 300) -> list[bytes]:
    """Return events of producers with one template each, in random order."""
    chance = Random(seed)
    shapes = [chance.randrange(2**32) for _ in range(producers)]
    return [
        Spelling(Random(chance.choice(shapes)), chance, exotic=True).event(number, 100)
        for number in range(first, first + count)
    ]


def reference(payloads: Sequence[bytes]) -> Columns:
    """Return the columns that the generic decoder produces."""
    return Columns.of(EventRows([read_event(payload) for payload in payloads]))


def texts(values: Iterable[Text | None]) -> list[str | None]:
    """Return all values as `str`."""
    return [one.decode() if isinstance(one, bytes) else one for one in values]


def plain(columns: Columns) -> tuple[object, ...]:
    """Return the columns with all strings as `str`, to compare them."""
    maps = (columns.properties, columns.systems)
    return (
        columns.numbers,
        columns.bodies,
        columns.enqueued,
        [texts(one) for one in (columns.offsets, columns.publishers, columns.partition_keys)],
        [(one.ends, texts(one.keys), texts(one.values)) for one in maps],
    )
