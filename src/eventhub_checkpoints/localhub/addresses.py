"""What the addresses of links mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from .conditions import RefusedError, not_found
from .management import CBS, MANAGEMENT

# Python's client writes amqps://HOST/PATH, the others the path alone.
_HOST = re.compile(r"^[a-z]+://[^/]*/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Node:
    """`$management` or `$cbs`."""

    name: str


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """A partition as a consumer group reads it."""

    hub: str
    group: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class PublishTo:
    """A hub, or one partition of it."""

    hub: str
    partition_id: str | None


def read_source(address: object) -> Node | ReadFrom:
    """Say what a receiver asks for.

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
    """Say where a sender wants to send.

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
