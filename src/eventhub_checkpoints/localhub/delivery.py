"""Link that delivers events: frame heads come from a template, many go into one write."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.decode import skip
from eventhub_checkpoints.amqp.messages import DELIVERY_ANNOTATIONS, HEADER, section
from eventhub_checkpoints.amqp.types import Symbol, Timestamp
from eventhub_checkpoints.localhub.events import now
from eventhub_checkpoints.localhub.links import OutLink

if TYPE_CHECKING:
    from eventhub_checkpoints.amqp.performatives import Attach
    from eventhub_checkpoints.localhub.hubs import Hub
    from eventhub_checkpoints.localhub.session import Session

RUNTIME_METRIC = "com.microsoft:enable-receiver-runtime-metric"
OWNER_LEVEL = "com.microsoft:epoch"

# Limits of one turn of a link; other links and clients get a turn in between.
_TURN_EVENTS = 1000
_TURN_BYTES = 512 * 1024

# Frame size, all bytes up to the delivery id, that id, the id again as tag, remaining fields:
# message format 0, settled, no more, and five nulls, as the client requires all eleven fields.
_HEAD = struct.Struct(">I16sI2sI8s")
_TRANSFER = b"\x00\x53\x14\xc0\x19\x0b\x70"
_TAG = b"\xa0\x04"
_REST = b"\x43\x41\x42\x40\x40\x40\x40\x40"


class EventLink(OutLink):
    """Link that sends a partition's events from `cursor` on, settled, within its credit.

    Attributes:
        cursor: sequence number of the next event to send.
        epoch: the receiver's owner level, or None.
        is_mute: whether it delivers nothing, as after a fault of the service that its client does
            not notice.
    """

    def __init__(
        self, session: Session, attach: Attach, hub: Hub, group: str, partition_id: str
    ) -> None:
        super().__init__(session, attach)
        self.hub, self.group, self.partition_id = hub, group, partition_id
        epoch = (attach.properties or {}).get(OWNER_LEVEL)
        self.epoch = epoch if isinstance(epoch, int) else None
        self.container_id = session.connection.container_id
        self.cursor = 0
        self.is_mute = False
        self._log = hub.partition(partition_id)
        self._tracked = RUNTIME_METRIC in attach.desired_capabilities
        self._scheduled = False
        self._prefix = (
            struct.pack(">HH", 0x0200, session.channel)
            + _TRANSFER
            + struct.pack(">IB", self.handle, 0x70)
        )

    def listen(self, start: int) -> None:
        """Deliver from `start` on, and whenever events are appended."""
        self.cursor = start
        self._log.listeners.add(self.pump)

    def on_closed(self) -> None:
        """Stop listening, and leave the partition's readers."""
        self._log.listeners.discard(self.pump)
        self.credit = 0
        readers = self.hub.readers[self.group.lower(), self.partition_id]
        if self in readers:
            readers.remove(self)

    def pump(self) -> None:
        """Send one turn of events, and schedule the next, to let other callbacks run first."""
        if not self._scheduled and self.turn():
            self._scheduled = True
            self.session.later(self._again)

    def turn(self) -> bool:
        """Send up to one write of events; return whether any were sent."""
        cursor = max(self.cursor, self._log.first)
        count = min(self.credit, self._log.end - cursor, self.session.window, _TURN_EVENTS)
        if count <= 0 or self.is_mute or self.session.busy:
            return False
        start = cursor - self._log.first
        payloads = self._log.payloads[start : start + count]
        if self._tracked:
            tracking = self._tracking()
            payloads = [_insert(payload, tracking) for payload in payloads]
        sent = self._send(payloads)
        self.cursor = cursor + sent
        self.credit -= sent
        self.delivery_count = (self.delivery_count + sent) & 0xFFFF_FFFF
        return True

    def _again(self) -> None:
        self._scheduled = False
        self.pump()

    def _send(self, payloads: list[bytes]) -> int:
        """Send the payloads that fit into one write; return how many."""
        limit = self.session.max_frame_size - _HEAD.size
        pack, prefix, delivery_id = _HEAD.pack, self._prefix, self.session.next_delivery_id
        parts, size, sent = [], 0, 0
        for payload in payloads:
            length = len(payload)
            if length > limit or size > _TURN_BYTES:
                break
            parts.append(pack(_HEAD.size + length, prefix, delivery_id, _TAG, delivery_id, _REST))
            parts.append(payload)
            size += length
            delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
            sent += 1
        if not sent:
            self.session.send_delivery(self.handle, payloads[0])
            return 1
        self.session.send_frames(b"".join(parts), sent)
        return sent

    def _tracking(self) -> bytes:
        log = self._log
        return section(
            DELIVERY_ANNOTATIONS,
            {
                Symbol("last_enqueued_sequence_number"): log.end - 1,
                Symbol("last_enqueued_offset"): log.last_offset,
                Symbol("last_enqueued_time_utc"): Timestamp(log.last_time),
                Symbol("runtime_info_retrieval_time_utc"): now(),
            },
        )


def _insert(payload: bytes, annotations: bytes) -> bytes:
    """Insert delivery annotations at their place: first, or after the header section."""
    at = skip(payload) if payload[2] == HEADER else 0
    return payload[:at] + annotations + payload[at:]
