"""Link addresses, and the response to an attach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from eventhub_checkpoints.amqp.performatives import SENDER, Attach, Detach, Error, Source, Target
from eventhub_checkpoints.localhub.conditions import RefusedError, not_found
from eventhub_checkpoints.localhub.delivery import EventLink
from eventhub_checkpoints.localhub.links import (
    MAX_MESSAGE_SIZE,
    InLink,
    Link,
    PublishLink,
    ReplyLink,
    RequestLink,
)
from eventhub_checkpoints.localhub.management import CBS, MANAGEMENT
from eventhub_checkpoints.localhub.positions import read_filters
from eventhub_checkpoints.localhub.readers import admit

if TYPE_CHECKING:
    from eventhub_checkpoints.localhub.session import Session

# The Python client sends amqps://HOST/PATH, the others the path alone.
_HOST = re.compile(r"^[a-z]+://[^/]*/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Node:
    """Node `$management` or `$cbs`."""

    name: str


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Partition as read by a consumer group."""

    hub: str
    group: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class PublishTo:
    """Hub, or one partition of it, as a target."""

    hub: str
    partition_id: str | None


def read_source(address: object) -> Node | ReadFrom:
    """Parse the address that a receiver reads from.

    Raises:
        RefusedError: nothing has this address.
    """
    match _segments(address):
        case [*_, name] if name.lower() in (MANAGEMENT, CBS):
            return Node(name.lower())
        case [hub, groups, group, partitions, partition_id] if (
            groups.lower() == "consumergroups" and partitions.lower() == "partitions"
        ):
            return ReadFrom(hub, group, partition_id)
    raise RefusedError(not_found(str(address)))


def read_target(address: object) -> Node | PublishTo:
    """Parse the address that a sender sends to.

    Raises:
        RefusedError: nothing has this address.
    """
    match _segments(address):
        case [*_, name] if name.lower() in (MANAGEMENT, CBS):
            return Node(name.lower())
        case [hub]:
            return PublishTo(hub, None)
        case [hub, partitions, partition_id] if partitions.lower() == "partitions":
            return PublishTo(hub, partition_id)
        case [hub, publishers, _] if publishers.lower() == "publishers":
            return PublishTo(hub, None)
    raise RefusedError(not_found(str(address)))


def _segments(address: object) -> list[str]:
    if not isinstance(address, str):
        return []
    return [unquote(part) for part in _HOST.sub("", address).strip("/").split("/") if part]


_SETTLED = 1


def attach(session: Session, wanted: Attach) -> None:
    """Create the link that the peer requests.

    Raises:
        RefusedError: the link is not allowed.
    """
    if wanted.role is SENDER:
        link = _incoming(session, wanted)
        _confirm(session, link, wanted)
        link.grant()
        return
    source = wanted.source if isinstance(wanted.source, Source) else Source()
    where = read_source(source.address)
    if isinstance(where, Node):
        _confirm(session, ReplyLink(session, wanted, where.name, _target(wanted)), wanted)
    else:
        _attach_reader(session, wanted, source, where)


def refuse(session: Session, wanted: Attach, error: Error) -> None:
    """Reject the peer's link with an error."""
    answer = Attach(name=wanted.name, handle=wanted.handle, role=not wanted.role)
    if answer.role is SENDER:
        answer.initial_delivery_count = 0
    session.send(answer)
    session.send(Detach(handle=wanted.handle, closed=True, error=error))


def _target(wanted: Attach) -> object:
    return wanted.target.address if isinstance(wanted.target, Target) else None


def _incoming(session: Session, wanted: Attach) -> InLink:
    to = read_target(_target(wanted))
    if isinstance(to, Node):
        return RequestLink(session, wanted, to.name)
    hub = session.hubs.find(to.hub)
    log = None if to.partition_id is None else hub.partition(to.partition_id)
    return PublishLink(session, wanted, hub, log)


def _attach_reader(session: Session, wanted: Attach, source: Source, where: ReadFrom) -> None:
    hub = session.hubs.find(where.hub)
    group = hub.check_group(where.group)
    link = EventLink(session, wanted, hub, where.group, where.partition_id)
    start = read_filters(source.filters).locate(hub.partition(where.partition_id))
    readers = hub.readers[group, where.partition_id]
    for reader, error in admit(readers, link.epoch):
        reader.detach(error)
    readers.append(link)
    _confirm(session, link, wanted)
    link.listen(start)


def _confirm(session: Session, link: Link, wanted: Attach) -> None:
    """Confirm with the fields that the peer sent, and the hub's own for missing ones."""
    session.links[wanted.handle] = link
    role = not wanted.role
    session.send(
        Attach(
            name=wanted.name,
            handle=wanted.handle,
            role=role,
            snd_settle_mode=_SETTLED if role is SENDER else wanted.snd_settle_mode,
            rcv_settle_mode=wanted.rcv_settle_mode,
            source=wanted.source or Source(),
            target=wanted.target or Target(),
            initial_delivery_count=0 if role is SENDER else None,
            max_message_size=MAX_MESSAGE_SIZE,
            properties=wanted.properties,
        )
    )
