"""The listening side: connections come in, everything else is theirs."""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from eventhub_checkpoints._shared.secrets import quoted

from .conditions import RefusedError
from .connection import Connection
from .faults import Faults, refused_link

if TYPE_CHECKING:
    import ssl

    from eventhub_checkpoints.amqp.endpoints import Error
    from eventhub_checkpoints.amqp.performatives import Attach

    from .hubs import Hub, Hubs
    from .log import PartitionLog

_CLOSE_TIMEOUT = 2.0


class Server:
    """An AMQP server for a set of hubs, on the loop that starts it.

    Args:
        hubs: what it serves.
        idle_timeout: seconds of silence after which a client counts as gone.
    """

    def __init__(self, hubs: Hubs, idle_timeout: float) -> None:
        self.hubs = hubs
        self.faults = Faults()
        self.idle_timeout = idle_timeout
        self.container_id = f"localhub-{uuid.uuid4().hex[:8]}"
        self.connections: set[Connection] = set()

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Listen, and return the port.

        Raises:
            OSError: the address cannot be had.
        """
        loop = asyncio.get_running_loop()
        self._all_lost = asyncio.Event()
        try:
            self._listener = await loop.create_server(
                lambda: Connection(self), host, port, ssl=context, reuse_address=True
            )
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        except ValueError as error:
            # Python could not even ask for it: its name has too long a label, or an empty one.
            raise ValueError(
                f"host is {quoted(host)}, which is no name of a host: {error}"
            ) from error
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def is_listening(self) -> bool:
        """Whether connections may come in."""
        return self._listener.is_serving()

    async def stop(self) -> None:
        """Stop listening and end all connections."""
        # asyncio forgets a connection that it has accepted and not begun when a server is closed,
        # and leaves its socket open: accept no more, let those begin, then close.
        for listening in self._listener.sockets:
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0)
        self._listener.close()
        for connection in tuple(self.connections):
            connection.close()
            connection.abort()
        if self.connections:
            self._all_lost.clear()
            await asyncio.wait_for(self._all_lost.wait(), _CLOSE_TIMEOUT)

    def find(self, hub: str) -> Hub:
        """Find a hub for a caller of the Python API.

        Raises:
            LookupError: there is none with this name.
        """
        try:
            return self.hubs.find(hub)
        except RefusedError:
            known = ", ".join(self.hubs.names) or "none"
            raise LookupError(f"there is no hub {quoted(hub)}; there are: {known}") from None

    def log(self, hub: str, partition_id: str) -> PartitionLog:
        """Find a partition for a caller of the Python API.

        Raises:
            LookupError: the hub has no such partition.
        """
        found = self.find(hub)
        try:
            return found.partition(partition_id)
        except RefusedError:
            count = len(found.partitions)
            raise LookupError(
                f"hub {quoted(hub)} has no partition {quoted(partition_id)}; it has '0' to "
                f"'{count - 1}'"
            ) from None

    def on_lost(self, connection: Connection) -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._all_lost.set()

    def drop_connections(self) -> int:
        """Cut all connections off; return how many."""
        dropped = tuple(self.connections)
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def note_refused(self, container_id: str, attach: Attach, error: Error) -> None:
        """Write a refused link into the journal."""
        self.faults.journal.append(refused_link(container_id, attach, error))


def _cannot_listen(host: str, port: int, error: OSError) -> OSError:
    # asyncio's text repeats the number and shows a tuple; a host that is not found has no number
    # of the system, but one of the resolver, below zero.
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror or str(error)
    return OSError(number, f"cannot listen on host {quoted(host)}, port {port}: {reason}")
