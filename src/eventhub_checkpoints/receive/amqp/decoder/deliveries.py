"""The deliveries of one receiving link: its transfers become rows, everything else is handed on."""

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
    """Rows out of the frames of one receiving link: bytes in, columns out.

    Bound: at most one frame of `max_frame_size` and one delivery of `MAX_DELIVERY_SIZE` are held
    back; the pending rows are the caller's to take.

    Args:
        channel: on which the peer sends.
        handle: the peer's handle of the link.
        max_frame_size: the largest frame, in bytes, that was agreed on.

    Attributes:
        deliveries: deliveries of the link that ended, aborted ones too: what credit counts.
        transfers: transfer frames of the link: what the session's incoming window counts.
        heartbeats: empty frames, of any channel.
        generic: events that were read the generic way.
        last_delivery_id: of the delivery that ended last.
        unsettled: ids that the peer sent unsettled and that want a disposition; the caller
            clears the list when it has sent one.
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
        """Pending rows."""
        return len(self._pending.layouts)

    @property
    def halves(self) -> int:
        """Events of which only the head had a learned layout."""
        return self._layouts.halves

    @property
    def size(self) -> int:
        """Bytes of the pending rows' bodies."""
        return self._size

    @property
    def is_between(self) -> bool:
        """No part of a frame or delivery is held back."""
        return not self._rest and not self._assembly.started

    def feed(self, data: Data) -> list[bytes]:
        """Take what was received, whole frames or not.

        Returns:
            Every frame that is no transfer of the link and not empty, whole and in order.

        Raises:
            CodecError: a frame cannot be read. Rows that came before stay, what followed is
                dropped, and every further call raises the same.
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
        """Give the pending rows out, the oldest first, at most so many."""
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
        """Take frames of known layouts; give where the first other one starts."""
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
                # In a run of one layout a frame costs one match.
                again = other.match if other is layout and isinstance(other, Layout) else None
                layout, held = other, other.held
            order.append(layout)
            at = end
        if len(order) > known:
            self._check(data, begin, known)
        return at

    def _check(self, data: bytes, at: int, known: int) -> None:
        """Check the rows from `known` on, whose frames lie one after another from `at` on."""
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
        """Read the generic way what layouts have misread."""
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
        """Read a frame; whether it was the link's, or empty."""
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
