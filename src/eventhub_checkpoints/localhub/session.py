"""Sessions: windows, handles, and deliveries of several frames."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.performatives import (
    RECEIVER,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
    encode_frame,
)
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub.attaching import attach, refuse
from eventhub_checkpoints.localhub.conditions import RefusedError, not_found
from eventhub_checkpoints.localhub.links import Link, OutLink, ReplyLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.amqp.performatives import Composite
    from eventhub_checkpoints.localhub.connection import Connection
    from eventhub_checkpoints.localhub.hubs import Hubs

WINDOW = 5000
_HANDLE_MAX = 255
# Room for a transfer performative and a frame head in front of a part of a payload.
_FRAME_OVERHEAD = 64


class Session:
    """Session of a connection; both directions use the peer's channel and handles."""

    def __init__(self, connection: Connection, channel: int, begin: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.hubs: Hubs = connection.hubs
        self.max_frame_size = connection.remote_max_frame_size
        self.links: dict[int, Link] = {}
        self.next_delivery_id = 0
        self.window = begin.incoming_window
        self._next_incoming_id = begin.next_outgoing_id
        self._next_outgoing_id = 0
        self._waiting: deque[bytes] = deque()
        self.send(
            Begin(
                remote_channel=channel,
                incoming_window=WINDOW,
                outgoing_window=WINDOW,
                handle_max=_HANDLE_MAX,
            )
        )

    @property
    def busy(self) -> bool:
        """Return whether events must wait for the socket, or for a delivery of several frames."""
        return self.connection.paused or bool(self._waiting)

    def later(self, function: Callable[[], None]) -> None:
        """Schedule a function, to let other callbacks run first."""
        self.connection.later(function)

    def send(self, performative: Composite) -> None:
        """Send a frame on this session's channel."""
        self.connection.write(encode_frame(performative, self.channel))

    def send_flow(
        self,
        handle: int | None = None,
        delivery_count: int | None = None,
        credit: int | None = None,
    ) -> None:
        """Send the session's windows, and a link's credit with them."""
        self.send(
            Flow(
                next_incoming_id=self._next_incoming_id,
                incoming_window=WINDOW,
                next_outgoing_id=self._next_outgoing_id,
                outgoing_window=WINDOW,
                handle=handle,
                delivery_count=delivery_count,
                link_credit=credit,
            )
        )

    def send_settled(self, delivery_id: int, outcome: Composite) -> None:
        """Send the outcome of a delivery to its sender."""
        self.send(
            Disposition(
                role=RECEIVER, first=delivery_id, last=delivery_id, settled=True, state=outcome
            )
        )

    def send_frames(self, frames: bytes, count: int) -> None:
        """Send transfers that fit into the window, one delivery each."""
        self.next_delivery_id = (self.next_delivery_id + count) & 0xFFFF_FFFF
        self._count(count)
        self.connection.write(frames)

    def send_delivery(self, handle: int, payload: bytes) -> None:
        """Send a delivery in as many frames as it needs, when the window has room for them."""
        room = self.max_frame_size - _FRAME_OVERHEAD
        delivery_id = self.next_delivery_id
        self.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        for start in range(0, len(payload), room):
            transfer = Transfer(
                handle=handle,
                delivery_id=delivery_id,
                delivery_tag=delivery_id.to_bytes(4, "big"),
                message_format=0,
                settled=True,
                more=start + room < len(payload),
            )
            part = payload[start : start + room]
            self._waiting.append(encode_frame(transfer, self.channel, part))
        self._flush()

    def _flush(self) -> None:
        while self._waiting and self.window > 0:
            self._count(1)
            self.connection.write(self._waiting.popleft())

    def _count(self, frames: int) -> None:
        self.window -= frames
        self._next_outgoing_id = (self._next_outgoing_id + frames) & 0xFFFF_FFFF

    def reply_link(self, node: str, address: object) -> ReplyLink:
        """Return the link for a response: the requested one, else the latest of its node.

        Raises:
            RefusedError: no receiver is attached to the node.
        """
        links = [
            link
            for link in self.links.values()
            if isinstance(link, ReplyLink) and link.node == node
        ]
        named = [link for link in links if link.address == address]
        if not links:
            raise RefusedError(not_found(f"{node}, a link for replies"))
        return (named or links)[-1]

    def drop(self, link: Link) -> None:
        """Forget a link."""
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
            link.on_closed()

    def close(self) -> None:
        """Forget all links."""
        for link in list(self.links.values()):
            self.drop(link)

    def pump(self) -> None:
        """Send what waited for the window or the socket."""
        self._flush()
        for link in list(self.links.values()):
            if isinstance(link, OutLink):
                link.pump()

    def on_frame(self, performative: Composite, payload: bytes) -> None:
        """Process a frame of this session.

        Raises:
            CodecError: the frame is not allowed in a session.
        """
        match performative:
            case Transfer():
                self._on_transfer(performative, payload)
            case Flow():
                self._on_flow(performative)
            case Disposition():
                # Events are sent settled, so a disposition carries no news.
                pass
            case Attach():
                self._on_attach(performative)
            case Detach():
                self._on_detach(performative)
            case End():
                self.close()
                self.connection.forget(self)
                self.send(End())
            case _:
                raise CodecError(f"unexpected {type(performative).__name__} frame in a session")

    def _on_transfer(self, transfer: Transfer, payload: bytes) -> None:
        self._next_incoming_id = (self._next_incoming_id + 1) & 0xFFFF_FFFF
        link = self.links.get(transfer.handle)
        # A sender may not know yet that its link is gone.
        if link is not None:
            link.on_transfer(transfer, payload)

    def _on_flow(self, flow: Flow) -> None:
        known = flow.next_incoming_id or 0
        in_flight = (self._next_outgoing_id - known) & 0xFFFF_FFFF
        self.window = flow.incoming_window - in_flight
        link = None if flow.handle is None else self.links.get(flow.handle)
        if link is not None:
            link.on_flow(flow)
        elif flow.handle is None and flow.echo:
            self.send_flow()
        # The window may have grown for every link.
        self.pump()

    def _on_detach(self, detach: Detach) -> None:
        link = self.links.get(detach.handle)
        if link is not None:
            self.drop(link)
            self.send(Detach(handle=detach.handle, closed=detach.closed))

    def _on_attach(self, wanted: Attach) -> None:
        if wanted.handle in self.links or wanted.handle > _HANDLE_MAX:
            raise CodecError(f"no link can be attached to handle {wanted.handle}")
        try:
            error = self.connection.faults.take_refusal()
            if error is not None:
                raise RefusedError(error)
            attach(self, wanted)
        except RefusedError as refusal:
            self.connection.note_refused(wanted, refusal.error)
            refuse(self, wanted, refusal.error)
