"""Which link an attach asks for, and the answer to it.

A refused link is answered as the service does it: an attach without source and target, then a
detach with the condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventhub_checkpoints.amqp.endpoints import Error, Source, Target
from eventhub_checkpoints.amqp.performatives import SENDER, Attach, Detach

from .addresses import Node, ReadFrom, read_source, read_target
from .delivery import EventLink
from .links import MAX_MESSAGE_SIZE, InLink, Link, PublishLink, ReplyLink, RequestLink
from .positions import read_filters
from .readers import admit

if TYPE_CHECKING:
    from .session import Session

_SETTLED = 1


def attach(session: Session, wanted: Attach) -> None:
    """Make the link that the peer wants.

    Raises:
        RefusedError: it may not have it.
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
    """Tell the peer that it may not have the link."""
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
    """Answer with the fields that the peer sent, and the hub's own where they are missing."""
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
