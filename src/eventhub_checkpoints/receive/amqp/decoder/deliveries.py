"""Decoding of one link's deliveries: transfers become rows, other frames are passed on.

(1) Frames of one link share a byte template, see `shapes` and `learning`. (2) The template becomes
a regular expression, see `patterns` and `layouts`. (3) Sizes are verified after the match, else the
generic decoder in `events` takes over.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.frames import AMQP_FRAME, Frame, split_frame
from eventhub_checkpoints.amqp.messages import BATCH_FORMAT
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.events import read_events
from eventhub_checkpoints.receive.amqp.decoder.layouts import Layout, unsettled_ids
from eventhub_checkpoints.receive.amqp.decoder.learning import Layouts
from eventhub_checkpoints.receive.amqp.decoder.pending import Pending
from eventhub_checkpoints.receive.amqp.decoder.transfers import (
    MAX_DELIVERY_SIZE,
    Assembly,
    Delivery,
    is_transfer,
    read_transfer,
    read_whole,
)

if TYPE_CHECKING:
    from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
    from eventhub_checkpoints.receive.amqp.decoder.layouts import Held, Match

__all__ = ["MAX_DELIVERY_SIZE", "Deliveries"]

Data = bytes | bytearray | memoryview

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
        generic: events read by the generic decoder.
        last_delivery_id: id of the delivery that ended last.
        unsettled: ids of deliveries that the peer sent unsettled and that need a disposition; the
            caller clears the list when it has sent one.
    """

    def __init__(self, *, channel: int, handle: int, max_frame_size: int) -> None:
        self._channel, self._handle, self._limit = channel, handle, max_frame_size
        self.deliveries = self.transfers = self.heartbeats = self.generic = 0
        self.last_delivery_id: int | None = None
        self.unsettled: list[int] = []
        self._rest = bytearray()
        self._needed = 0
        self._assembly = Assembly()
        self._layouts = Layouts()
        self._pending = Pending()
        self._size = 0
        self._error: CodecError | None = None

    @property
    def rows(self) -> int:
        """Number of pending rows."""
        return len(self._pending.layouts)

    @property
    def halves(self) -> int:
        """Number of events of which only the head had a learned layout."""
        return self._layouts.halves

    @property
    def size(self) -> int:
        """Size in bytes of the pending rows' bodies."""
        return self._size

    @property
    def is_between(self) -> bool:
        """Return whether no part of a frame or delivery is buffered."""
        return not self._rest and not self._assembly.started

    def feed(self, data: Data) -> list[bytes]:
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
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data, self._rest = bytes(self._rest), bytearray()
        others: list[bytes] = []
        try:
            self._walk(bytes(data), others)
        except CodecError as error:
            self._error = error
            raise
        return others

    def take(self, most: int | None = None) -> Columns:
        """Return the oldest pending rows, at most `most`, and remove them."""
        columns = self._pending.take(self.rows if most is None else most)
        self._size -= columns.size
        self._layouts.taken(len(columns))
        return columns

    def _walk(self, data: bytes, others: list[bytes]) -> None:
        at = 0
        while True:
            if not self._assembly.started:
                at = self._match(data, at)
            frame = split_frame(data, at, self._limit)
            if frame is None:
                break
            raw = data[at : frame.end]
            if not self._read(raw, frame._replace(start=frame.start - at, end=len(raw))):
                others.append(raw)
            at = frame.end
        self._hold(data, at)

    def _hold(self, data: bytes, at: int) -> None:
        self._rest = bytearray(data[at:])
        self._needed = 8 if len(self._rest) < 8 else int.from_bytes(self._rest[:4], "big")

    def _match(self, data: bytes, at: int) -> int:
        """Match frames against known templates; return the offset of the first that fits none."""
        begin, stop, limit = at, len(data) - 8, self._limit
        find, order = self._layouts.find, self._pending.layouts
        known = len(order)
        again: Match | None = None
        layout: Held | None = None
        held: list[bytes] = []
        while at <= stop:
            size = _size_at(data, at)[0]
            end = at + size
            if size > limit or end > stop + 8:
                break
            found = None if again is None else again(data, at, end)
            if found is not None:
                held += found.groups()
            else:
                other = find(data, at, end)
                if other is None:
                    break
                # In a run of frames of one layout, a frame costs one match.
                again = other.match if other is layout and isinstance(other, Layout) else None
                layout, held = other, other.held
            order.append(layout)
            at = end
        if len(order) > known:
            self._check(data, begin, known)
        return at

    def _check(self, data: bytes, at: int, known: int) -> None:
        """Verify the rows from `known` on, whose frames lie one after another from `at` on."""
        pending, matched = self._pending, self.rows - known
        self.transfers += matched
        self.deliveries += matched
        self.last_delivery_id = pending.last_delivery_id()
        layouts = pending.touched(known)
        if self._layouts.has_unsettled:
            self.unsettled += unsettled_ids(layouts)
        try:
            self._repair(layouts, data, at, known)
        finally:
            self._size += sum(layout.check() for layout in layouts)

    def _repair(self, layouts: list[Held], data: bytes, at: int, place: int) -> None:
        """Let the generic decoder take over the rows whose sizes are wrong."""
        for misread in self._pending.misread(layouts):
            while place < misread:
                at += _size_at(data, at)[0]
                place += 1
            try:
                event = read_whole(data[at : at + _size_at(data, at)[0]])
            except CodecError:
                self._pending.cut_off(place)
                raise
            self._pending.replace(place, event)
            self._size += len(event.body)
            self.generic += 1

    def _read(self, raw: bytes, frame: Frame) -> bool:
        """Read a frame; return whether it was a transfer of the link, or empty."""
        if frame.start == frame.end:
            self.heartbeats += 1
            return True
        if (frame.kind, frame.channel) != (
            AMQP_FRAME,
            self._channel,
        ) or not is_transfer(raw, frame.start):
            return False
        transfer, payload = read_transfer(raw, frame)
        if transfer.handle != self._handle:
            return False
        self.transfers += 1
        is_whole = not self._assembly.started
        delivery = self._assembly.add(transfer, payload)
        if delivery is not None:
            self._end(delivery)
            if is_whole and not delivery.aborted and delivery.message_format != BATCH_FORMAT:
                self._layouts.learn(raw)
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
            self._size += sum(len(event.body) for event in events)
