"""Sessions: windows, deliveries of several frames, and the links that peers attach."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import unquote

from eventhub_checkpoints.amqp import performatives as amqp
from eventhub_checkpoints.amqp.performatives import encode_delivery, encode_frame
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub import links
from eventhub_checkpoints.localhub.conditions import (
    RefusedError,
    not_found,
    token_expired,
    unauthorized,
)
from eventhub_checkpoints.localhub.delivery import EventLink
from eventhub_checkpoints.localhub.management import CBS, MANAGEMENT
from eventhub_checkpoints.localhub.readers import admit, read_filters

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.amqp.performatives import Composite
    from eventhub_checkpoints.localhub.connection import Connection
    from eventhub_checkpoints.localhub.hubs import Hub, Hubs

WINDOW = 5000
_HANDLE_MAX = 255
_SETTLED = 1
_NODES = (MANAGEMENT, CBS)
# The Python client sends amqps://HOST/PATH, the others the path alone.
_HOST = re.compile(r"^[a-z]+://[^/]*/", re.IGNORECASE)


def _segments(address: object) -> list[str]:
    if not isinstance(address, str):
        return []
    return [unquote(part) for part in _HOST.sub("", address).strip("/").split("/") if part]


class Session:
    """Session of a connection; both directions use the peer's channel and handles."""

    def __init__(self, connection: Connection, channel: int, begin: amqp.Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.hubs: Hubs = connection.hubs
        self.max_frame_size = connection.remote_max_frame_size
        self.links: dict[int, links.Link] = {}
        self.next_delivery_id = 0
        self.window = begin.incoming_window
        self._next_incoming_id = self._announced = begin.next_outgoing_id
        self._next_outgoing_id = 0
        self._waiting: deque[bytes] = deque()
        self.send(
            amqp.Begin(
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
        """Send the session's windows; with a handle, also that link's credit."""
        self._announced = self._next_incoming_id
        self.send(
            amqp.Flow(
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
            amqp.Disposition(
                role=amqp.RECEIVER, first=delivery_id, last=delivery_id, settled=True, state=outcome
            )
        )

    def send_frames(self, frames: bytes, count: int) -> None:
        """Send encoded transfers, one delivery each; the caller keeps within the window."""
        self.next_delivery_id = (self.next_delivery_id + count) & 0xFFFF_FFFF
        self._count(count)
        self.connection.write(frames)

    def send_delivery(self, handle: int, payload: bytes) -> None:
        """Send a delivery in as many frames as it needs, when the window has room for them."""
        delivery_id = self.next_delivery_id
        self.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        transfer = amqp.Transfer(
            handle=handle,
            delivery_id=delivery_id,
            delivery_tag=delivery_id.to_bytes(4, "big"),
            message_format=0,
            settled=True,
        )
        self._waiting += encode_delivery(transfer, self.channel, payload, self.max_frame_size)
        self._flush()

    def _flush(self) -> None:
        while self._waiting and self.window > 0:
            self._count(1)
            self.connection.write(self._waiting.popleft())

    def _count(self, frames: int) -> None:
        self.window -= frames
        self._next_outgoing_id = (self._next_outgoing_id + frames) & 0xFFFF_FFFF

    def reply_link(self, node: str, address: object) -> links.ReplyLink:
        """Return the link for a response: the requested one, else the latest of its node.

        Raises:
            RefusedError: no receiver is attached to the node.
        """
        of_node = [
            link
            for link in self.links.values()
            if isinstance(link, links.ReplyLink) and link.node == node
        ]
        named = [link for link in of_node if link.address == address]
        if not of_node:
            raise RefusedError(not_found(f"{node}, a link for replies"))
        return (named or of_node)[-1]

    def drop(self, link: links.Link) -> None:
        """Forget a link."""
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
            link.on_closed()

    def close(self) -> None:
        """Forget all links."""
        for link in list(self.links.values()):
            self.drop(link)

    def pump(self) -> None:
        """Send the frames that waited for the window or the socket."""
        self._flush()
        for link in list(self.links.values()):
            if isinstance(link, links.OutLink):
                link.pump()

    def on_frame(self, performative: Composite, payload: bytes) -> None:
        """Process a frame of this session.

        Raises:
            CodecError: the frame is not allowed in a session.
        """
        match performative:
            case amqp.Transfer():
                self._on_transfer(performative, payload)
            case amqp.Flow():
                self._on_flow(performative)
            case amqp.Disposition():
                # Events are sent settled, so a disposition changes nothing.
                pass
            case amqp.Attach():
                self._on_attach(performative)
            case amqp.Detach():
                self._on_detach(performative)
            case amqp.End():
                self.close()
                self.connection.forget(self)
                self.send(amqp.End())
            case _:
                raise CodecError(f"unexpected {type(performative).__name__} frame in a session")

    def _on_transfer(self, transfer: amqp.Transfer, payload: bytes) -> None:
        self._next_incoming_id = (self._next_incoming_id + 1) & 0xFFFF_FFFF
        link = self.links.get(transfer.handle)
        # A sender may not know yet that its link is gone.
        if link is not None:
            link.on_transfer(transfer, payload)
        # A delivery may take many frames, so the window can be used up before any link's credit.
        if (self._next_incoming_id - self._announced) & 0xFFFF_FFFF >= WINDOW // 2:
            self.send_flow()

    def _on_flow(self, flow: amqp.Flow) -> None:
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

    def _on_detach(self, detach: amqp.Detach) -> None:
        link = self.links.get(detach.handle)
        if link is not None:
            self.drop(link)
            self.send(amqp.Detach(handle=detach.handle, closed=detach.closed))

    def _on_attach(self, request: amqp.Attach) -> None:
        if request.handle in self.links or request.handle > _HANDLE_MAX:
            raise CodecError(f"no link can be attached to handle {request.handle}")
        try:
            if refusals := self.connection.faults.refusals:
                raise RefusedError(refusals.popleft())
            self._check_authorized(request)
            if request.role is amqp.SENDER:
                self._attach_sender(request)
            else:
                self._attach_receiver(request)
        except RefusedError as refusal:
            self.connection.note_refused(request, refusal.error)
            self._refuse(request, refusal.error)

    def _check_authorized(self, request: amqp.Attach) -> None:
        source = request.source.address if isinstance(request.source, amqp.Source) else None
        address = _target(request) if request.role is amqp.SENDER else source
        is_token_link = [node.lower() for node in _segments(address)[-1:]] == [CBS]
        if not (is_token_link or self.connection.is_authorized):
            raise RefusedError(unauthorized(address))

    def detach_unauthorized(self) -> None:
        """Detach the links that need a token, because it has expired."""
        for link in list(self.links.values()):
            if isinstance(link, EventLink | links.PublishLink):
                link.detach(token_expired(link.name))

    def _attach_sender(self, request: amqp.Attach) -> None:
        address = _target(request)
        link: links.InLink
        match _segments(address):
            case [*_, node] if node.lower() in _NODES:
                link = links.RequestLink(self, request, node.lower())
            case [name, kind, partition_id] if kind.lower() == "partitions":
                hub = self.hubs.find(name)
                link = links.PublishLink(self, request, hub, hub.partition(partition_id))
            case [name]:
                link = links.PublishLink(self, request, self.hubs.find(name), None)
            case [name, kind, _] if kind.lower() == "publishers":
                link = links.PublishLink(self, request, self.hubs.find(name), None)
            case _:
                raise RefusedError(not_found(str(address)))
        self._confirm(link, request)
        link.grant()

    def _attach_receiver(self, request: amqp.Attach) -> None:
        source = request.source if isinstance(request.source, amqp.Source) else amqp.Source()
        match _segments(source.address):
            case [*_, node] if node.lower() in _NODES:
                link = links.ReplyLink(self, request, node.lower(), _target(request))
                self._confirm(link, request)
            case [hub, groups, group, partitions, partition_id] if (
                groups.lower() == "consumergroups" and partitions.lower() == "partitions"
            ):
                self._attach_reader(request, source, self.hubs.find(hub), group, partition_id)
            case _:
                raise RefusedError(not_found(str(source.address)))

    def _attach_reader(
        self, request: amqp.Attach, source: amqp.Source, hub: Hub, group: str, partition_id: str
    ) -> None:
        group_key = hub.check_group(group)
        link = EventLink(self, request, hub, group, partition_id)
        start = read_filters(source.filters).locate(hub.partition(partition_id))
        readers = hub.readers[group_key, partition_id]
        for reader, error in admit(readers, link.epoch):
            reader.detach(error)
        readers.append(link)
        self._confirm(link, request)
        link.listen(start)

    def _confirm(self, link: links.Link, request: amqp.Attach) -> None:
        """Confirm an attach with the peer's fields, and the hub's own where they are missing."""
        self.links[request.handle] = link
        role = not request.role
        self.send(
            amqp.Attach(
                name=request.name,
                handle=request.handle,
                role=role,
                snd_settle_mode=_SETTLED if role is amqp.SENDER else request.snd_settle_mode,
                rcv_settle_mode=request.rcv_settle_mode,
                source=request.source or amqp.Source(),
                target=request.target or amqp.Target(),
                initial_delivery_count=0 if role is amqp.SENDER else None,
                max_message_size=links.MAX_MESSAGE_SIZE,
                properties=request.properties,
            )
        )

    def _refuse(self, request: amqp.Attach, error: amqp.Error) -> None:
        answer = amqp.Attach(name=request.name, handle=request.handle, role=not request.role)
        if answer.role is amqp.SENDER:
            answer.initial_delivery_count = 0
        self.send(answer)
        self.send(amqp.Detach(handle=request.handle, closed=True, error=error))


def _target(request: amqp.Attach) -> object:
    return request.target.address if isinstance(request.target, amqp.Target) else None
