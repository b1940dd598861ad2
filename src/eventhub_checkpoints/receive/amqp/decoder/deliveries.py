"""Decoding of one link's deliveries: transfers become rows, other frames are passed on.

Source: OASIS AMQP 1.0, part 2, sections 2.6.14 and 2.7.5.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from eventhub_checkpoints.amqp.decode import decode
from eventhub_checkpoints.amqp.messages import BATCH_FORMAT
from eventhub_checkpoints.amqp.performatives import AMQP_FRAME, Transfer, decode_body, split_frame
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.events import read_event, read_events
from eventhub_checkpoints.receive.amqp.decoder.learning import LearnedTemplates
from eventhub_checkpoints.receive.amqp.decoder.rows import PendingRows

if TYPE_CHECKING:
    from collections.abc import Collection

    from eventhub_checkpoints.amqp.performatives import Frame
    from eventhub_checkpoints.receive.amqp.decoder.rows import Buffer, Match, Matcher
    from eventhub_checkpoints.receive.columns import Columns

MAX_DELIVERY_SIZE = 64 * 1024 * 1024
"""Maximum payload of one delivery, in bytes. Event Hubs takes events up to 20 MB on clusters with
large messages and up to 1 MB elsewhere; the limit stops a peer that never ends a delivery.
"""

_TRANSFER = (Transfer.descriptor, "amqp:transfer:list")

_size_at = struct.Struct(">I").unpack_from


class Deliveries:
    """Decoder from the frames of one receiving link to rows: bytes in, columns out.

    Bound: at most one frame of `max_frame_size` and one delivery of `MAX_DELIVERY_SIZE` are
    buffered; the caller has to take the pending rows.

    Args:
        channel: the channel on which the peer sends.
        handle: the peer's handle of the link.
        max_frame_size: the negotiated maximum frame size, in bytes.

    Attributes:
        deliveries: deliveries of the link that ended, aborted ones included; credit counts these.
        transfers: transfer frames of the link; the session's incoming window counts these.
        heartbeats: empty frames, on any channel.
        generic: events that were read without a template.
        last_delivery_id: id of the delivery that ended last.
        unsettled: ids of deliveries that the peer sent unsettled and that need a disposition; the
            caller clears the list when it has sent one.
        size: size in bytes of the pending rows' bodies.
    """

    def __init__(self, *, channel: int, handle: int, max_frame_size: int) -> None:
        self._channel, self._handle, self._limit = channel, handle, max_frame_size
        self.deliveries = self.transfers = self.heartbeats = self.generic = self.size = 0
        self.last_delivery_id: int | None = None
        self.unsettled: list[int] = []
        self._rest: list[bytes] = []
        self._kept = 0
        self._needed = 0
        self._assembly = Assembly()
        self._templates = LearnedTemplates()
        self._pending = PendingRows()
        self._error: CodecError | None = None

    @property
    def rows(self) -> int:
        """Number of pending rows."""
        return len(self._pending.order)

    @property
    def heads_only(self) -> int:
        """Number of events of which only the head fitted a learned template."""
        return self._templates.heads_only

    @property
    def is_at_boundary(self) -> bool:
        """Return whether no part of a frame or delivery is buffered."""
        return not self._rest and not self._assembly.has_started

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Decode received bytes, which may begin or end inside a frame.

        Returns:
            Every frame that is neither empty nor a transfer of the link, whole and in order.

        Raises:
            CodecError: a frame cannot be read. Earlier rows stay, later bytes are dropped, and
                every further call raises the same error.
        """
        if self._error is not None:
            raise self._error
        if self._rest:
            self._rest.append(bytes(data))
            self._kept += len(data)
            if self._kept < self._needed:
                return []
            data, self._rest, self._kept = b"".join(self._rest), [], 0
        try:
            return self._walk(bytes(data))
        except CodecError as error:
            self._error = error
            raise

    def take(self, most: int | None = None, fields: Collection[str] | None = None) -> Columns:
        """Return the oldest pending rows, at most `most`, and remove them; see `Columns.of`."""
        columns = self._pending.take(self.rows if most is None else most, fields)
        self.size -= columns.size
        self._templates.taken(len(columns))
        return columns

    def _walk(self, data: bytes) -> list[bytes]:
        """Read all whole frames and keep the rest; return those of other kinds or links."""
        others: list[bytes] = []
        at = 0
        while True:
            if not self._assembly.has_started:
                at = self._match(data, at)
            frame = split_frame(data, at, self._limit)
            if frame is None:
                break
            raw = data[at : frame.end]
            if not self._read(raw, frame._replace(start=frame.start - at, end=len(raw))):
                others.append(raw)
            at = frame.end
        rest = data[at:]
        self._rest, self._kept = [rest] if rest else [], len(rest)
        self._needed = 8 if len(rest) < 8 else _size_at(rest)[0]
        return others

    def _match(self, data: bytes, at: int) -> int:
        """Match frames against known templates; return the offset of the first that fits none."""
        begin, stop, limit = at, len(data) - 8, self._limit
        find, order = self._templates.find, self._pending.order
        first_new = len(order)
        match_again: Match | None = None
        latest: Buffer = self._pending.generic
        contents: list[bytes] = []
        while at <= stop:
            size = _size_at(data, at)[0]
            end = at + size
            if size > limit or end > stop + 8:
                break
            match = None if match_again is None else match_again(data, at, end)
            if match is not None:
                contents += match.groups()
            else:
                matcher = find(data, at, end)
                if matcher is None:
                    break
                # In a run of frames of one template, a frame costs one match.
                is_run = matcher is latest and matcher.is_whole
                match_again = matcher.match if is_run else None
                latest, contents = matcher, matcher.contents
            order.append(latest)
            at = end
        if len(order) > first_new:
            self._check(data, begin, first_new)
        return at

    def _check(self, data: bytes, at: int, first_new: int) -> None:
        """Verify the rows from `first_new` on, whose frames lie one after another from `at` on."""
        matchers = self._pending.matchers(first_new)
        self.transfers += self.rows - first_new
        self.deliveries += self.rows - first_new
        self.last_delivery_id = self._pending.last_delivery_id()
        if self._templates.has_unsettled:
            unsettled = [matcher for matcher in matchers if not matcher.template.settled]
            ids = (matcher.delivery_ids(matcher.checked) for matcher in unsettled)
            self.unsettled += sorted(chain.from_iterable(ids))
        try:
            self._repair(matchers, data, at, first_new)
        finally:
            self.size += sum(matcher.check() for matcher in matchers)

    def _repair(self, matchers: list[Matcher], data: bytes, at: int, row: int) -> None:
        """Read again, without a template, the rows that a template has misread."""
        for misread in self._pending.misread(matchers):
            while row < misread:
                at += _size_at(data, at)[0]
                row += 1
            raw = data[at : at + _size_at(data, at)[0]]
            try:
                event = read_event(_read_transfer(raw, split_frame(raw, 0, len(raw)))[1])
            except CodecError:
                self._pending.cut_off(row)
                raise
            self._pending.replace(row, event)
            self.size += len(event.body)
            self.generic += 1

    def _read(self, raw: bytes, frame: Frame) -> bool:
        """Read a frame; return whether it was a transfer of the link, or empty."""
        if frame.start == frame.end:
            self.heartbeats += 1
            return True
        if (frame.kind, frame.channel) != (AMQP_FRAME, self._channel):
            return False
        if raw[frame.start]:
            code = raw[frame.start]
            raise CodecError(f"a frame's body starts with 0x{code:02x}, not with a descriptor")
        if decode(raw, frame.start + 1)[0] not in _TRANSFER:
            return False
        transfer, payload = _read_transfer(raw, frame)
        if transfer.handle != self._handle:
            return False
        self.transfers += 1
        is_whole = not self._assembly.has_started
        delivery = self._assembly.add(transfer, payload)
        if delivery is not None:
            self._end(delivery)
            if is_whole and not delivery.aborted and delivery.message_format != BATCH_FORMAT:
                self._templates.learn(raw)
        return True

    def _end(self, delivery: Delivery) -> None:
        self.deliveries += 1
        self.last_delivery_id = delivery.delivery_id
        if not delivery.settled:
            self.unsettled.append(delivery.delivery_id)
        if not delivery.aborted:
            events = read_events(delivery.payload, delivery.message_format)
            self._pending.add(events)
            self.generic += len(events)
            self.size += sum(len(event.body) for event in events)


def _read_transfer(raw: bytes, frame: Frame | None) -> tuple[Transfer, bytes]:
    """Read the transfer in a whole frame; return it and its payload."""
    assert frame is not None
    body = decode_body(raw, frame)
    assert isinstance(body.performative, Transfer)
    return body.performative, body.payload


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
    def has_started(self) -> bool:
        """Return whether a part of a delivery is buffered."""
        return self._first is not None

    def add(self, transfer: Transfer, payload: bytes) -> Delivery | None:
        """Add the next transfer; return the delivery if that ends it.

        Raises:
            CodecError: it belongs to no open delivery, or the delivery is too large.
        """
        first, buffered = self._first or transfer, self._payload
        if first.delivery_id is None:
            raise CodecError("the first transfer of a delivery has no delivery-id")
        if transfer.delivery_id not in (None, first.delivery_id):
            raise CodecError(
                f"delivery {transfer.delivery_id} began before {first.delivery_id} had ended"
            )
        if len(buffered) + len(payload) > MAX_DELIVERY_SIZE:
            raise CodecError(f"delivery {first.delivery_id} exceeds {MAX_DELIVERY_SIZE} bytes")
        settled = self._settled or transfer.settled is True or transfer.aborted
        if transfer.more and not transfer.aborted:
            buffered += payload
            self._first, self._settled = first, settled
            return None
        if buffered:
            buffered += payload
            payload = bytes(buffered)
        self._first, self._payload, self._settled = None, bytearray(), False
        message_format = first.message_format or 0
        return Delivery(first.delivery_id, message_format, settled, transfer.aborted, payload)
