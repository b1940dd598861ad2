"""Listening server, its event loop in a thread, and the faults in effect."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.amqp.performatives import Source, Target
from eventhub_checkpoints.localhub.conditions import RefusedError
from eventhub_checkpoints.localhub.connection import Connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from eventhub_checkpoints.amqp.performatives import Attach, Error
    from eventhub_checkpoints.localhub.hubs import Hub, Hubs, PartitionLog

T = TypeVar("T")


JOURNAL_SIZE = 1000


@dataclass(frozen=True, slots=True)
class RefusedLink:
    """Link that the hub refused.

    Attributes:
        time: float seconds since the epoch, UTC.
        container_id: the client's identifier; azure-eventhub puts its consumer's name here.
        address: the requested address.
        condition: for instance "amqp:not-found".
        description: its description.
    """

    time: float
    container_id: str
    address: str
    condition: str
    description: str


@dataclass(slots=True)
class Faults:
    """Faults in effect.

    Attributes:
        refusing: whether new connections are dropped at once.
        refusing_tokens: whether every token is refused, as the service refuses a wrong key.
        delay: seconds by which everything is sent later.
        refusals: errors for the next links, one each.
        rejections: errors for the next deliveries of producers, one each.
        lost_answers: of how many further deliveries of producers the answer is lost.
        journal: recently refused links, by a fault or by the rules.
    """

    refusing: bool = False
    refusing_tokens: bool = False
    delay: float = 0.0
    refusals: deque[Error] = field(default_factory=deque)
    rejections: deque[Error] = field(default_factory=deque)
    lost_answers: int = 0
    journal: deque[RefusedLink] = field(default_factory=lambda: deque(maxlen=JOURNAL_SIZE))

    def end(self) -> None:
        """End all faults, for connections that are open too; the journal stays."""
        none = Faults()
        for each in fields(self):
            if each.name != "journal":
                setattr(self, each.name, getattr(none, each.name))


class BackgroundLoop:
    """Event loop in a thread that runs functions and coroutines and returns their results."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """Call a function on the loop's thread and wait for its result."""
        done: Future[T] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(work)
        return done.result()

    def stop(self) -> None:
        """Cancel everything that still runs, and end the thread."""
        self.run(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_others() -> None:
    # A connection that was just accepted is a task: cancelled before it begins, it would leave its
    # socket open.
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


_CLOSE_TIMEOUT = 2.0


class Server:
    """AMQP server for a set of hubs, on the loop that starts it.

    Args:
        hubs: the hubs to serve.
        idle_timeout: seconds of silence after which a client is disconnected.

    Attributes:
        keys: keys that sign tokens; None: every token is accepted.
    """

    def __init__(self, hubs: Hubs, idle_timeout: float) -> None:
        self.hubs = hubs
        self.faults = Faults()
        self.idle_timeout = idle_timeout
        self.keys: frozenset[str] | None = None
        self.container_id = f"localhub-{uuid.uuid4().hex[:8]}"
        self.connections: set[Connection] = set()

    async def start(self, host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Start listening, and return the port.

        Raises:
            OSError: the address is not available.
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
            # Python cannot even resolve the host: a label of its name is too long, or empty.
            raise ValueError(
                f"host is {quoted(host)}, which is not a valid host name: {error}"
            ) from error
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def is_listening(self) -> bool:
        """Return whether connections are accepted."""
        return self._listener.is_serving()

    async def stop(self) -> None:
        """Stop listening and end all connections."""
        # On closing a server, asyncio forgets connections that were accepted and not started, and
        # leaves their sockets open: stop accepting, let those start, then close.
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
            LookupError: no hub has this name.
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
        known = self.find(hub)
        try:
            return known.partition(partition_id)
        except RefusedError:
            count = len(known.partitions)
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
        """Drop all connections; return how many."""
        dropped = tuple(self.connections)
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def note_refused(self, container_id: str, attach: Attach, error: Error) -> None:
        """Record a refused link in the journal."""
        end = attach.source if attach.role else attach.target
        address = str(end.address if isinstance(end, Source | Target) else None)
        reason = (error.condition, error.description or "")
        self.faults.journal.append(RefusedLink(time.time(), container_id, address, *reason))


def _cannot_listen(host: str, port: int, error: OSError) -> OSError:
    # asyncio's message repeats the number and shows a tuple. For a host that is not found, the
    # number is not an errno but the resolver's, below zero.
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror or str(error)
    return OSError(number, f"cannot listen on host {quoted(host)}, port {port}: {reason}")
