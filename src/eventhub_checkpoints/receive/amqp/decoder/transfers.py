"""Assembly of a link's transfers into deliveries.

Source: OASIS AMQP 1.0, part 2, sections 2.6.14 and 2.7.5.
"""

from __future__ import annotations

from typing import NamedTuple

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.frames import Frame, decode_body, split_frame
from eventhub_checkpoints.amqp.performatives import Transfer
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.events import Event, read_event

MAX_DELIVERY_SIZE = 64 * 1024 * 1024
"""Maximum payload of one delivery, in bytes. Event Hubs takes events up to 20 MB on clusters with
large messages and up to 1 MB elsewhere; the limit stops a peer that never ends a delivery.
"""

_DESCRIPTORS = (Transfer.descriptor, "amqp:transfer:list")


def is_transfer(raw: bytes, start: int) -> bool:
    """Return whether the frame's body at `start` is a transfer.

    Raises:
        CodecError: it is not a described value.
    """
    if raw[start]:
        raise CodecError(f"a frame's body starts with 0x{raw[start]:02x}, not with a descriptor")
    descriptor, _ = decode(raw, start + 1)
    return descriptor in _DESCRIPTORS


def read_transfer(raw: bytes, frame: Frame) -> tuple[Transfer, bytes]:
    """Read a transfer; return it and its payload.

    Raises:
        CodecError: the performative is malformed.
    """
    body = decode_body(raw, frame)
    assert isinstance(body.performative, Transfer)
    return body.performative, body.payload


def read_whole(raw: bytes) -> Event:
    """Read the single event of a frame that holds a whole delivery.

    Raises:
        CodecError: the payload is not an event.
    """
    frame = split_frame(raw, 0, len(raw))
    assert frame is not None
    return read_event(read_transfer(raw, frame)[1])


class Delivery(NamedTuple):
    """Delivery that has ended."""

    delivery_id: int
    message_format: int
    settled: bool
    aborted: bool
    payload: bytes


class Assembly:
    """Assembly of the delivery being received; a link sends one after another."""

    def __init__(self) -> None:
        self._first: Transfer | None = None
        self._payload = bytearray()
        self._settled = False

    @property
    def started(self) -> bool:
        """Return whether a part of a delivery is buffered."""
        return self._first is not None

    def add(self, transfer: Transfer, payload: bytes) -> Delivery | None:
        """Add the next transfer; return the delivery if that ends it.

        Raises:
            CodecError: it belongs to no open delivery, or the delivery is too large.
        """
        first, held = self._first or transfer, self._payload
        if first.delivery_id is None:
            raise CodecError("the first transfer of a delivery has no delivery-id")
        if transfer.delivery_id not in (None, first.delivery_id):
            raise CodecError(
                f"delivery {transfer.delivery_id} began before {first.delivery_id} had ended"
            )
        if len(held) + len(payload) > MAX_DELIVERY_SIZE:
            raise CodecError(f"delivery {first.delivery_id} exceeds {MAX_DELIVERY_SIZE} bytes")
        settled = self._settled or transfer.settled is True or transfer.aborted
        if transfer.more and not transfer.aborted:
            held += payload
            self._first, self._settled = first, settled
            return None
        if held:
            held += payload
        whole = bytes(held) or payload
        self._first, self._payload, self._settled = None, bytearray(), False
        return Delivery(
            first.delivery_id,
            first.message_format or 0,
            settled,
            transfer.aborted,
            whole,
        )
