"""Local servers that run in a background thread, for tests and benchmarks."""

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Self

HOST = "127.0.0.1"
PIECE = 2**16
CALL_TIMEOUT = 30

Way = Coroutine[Any, Any, None]


class TcpServer(ABC):
    """Server whose public methods may all be called from any thread.

    It listens once it is constructed; leaving the `with` block stops it.

    Args:
        piece: number of bytes that a reader buffers before it applies backpressure.

    Attributes:
        port: port for clients, on 127.0.0.1; the same for its whole life.
    """

    def __init__(self, piece: int = PIECE) -> None:
        self._piece = piece
        # Bound for as long as the server lives: nobody else gets the port while it is down.
        self._bound = socket.socket()
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._bound.bind((HOST, 0))
        self.port: int = self._bound.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        # Daemon: a test that fails before it stops its server must not keep the run from ending.
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=type(self).__name__, daemon=True
        )
        self._thread.start()
        self.up()

    def up(self) -> None:
        """Listen (again), always on the same port."""
        self._call(self._up())

    def down(self) -> None:
        """Refuse connections and break those that are open, as when a server dies."""
        self._call(self._down())

    def stop(self) -> None:
        """Break all connections and end the thread."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which is closed afterwards; `OSError` and `EOFError` end it."""

    def _call(self, work: Way) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT)

    async def _up(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._connected, HOST, self.port, limit=self._piece, reuse_port=True
            )

    async def _down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in (connections := [*self._connections]):
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _end(self) -> None:
        await self._down()
        # A connection that was accepted while the server closed has a task by now, and so may have
        # what a connection has started that was cancelled twice.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError):
            pass  # one side is gone; closing below notifies the other one
        except asyncio.CancelledError:  # the server goes down; not raised: nobody awaits this
            writer.transport.abort()
        finally:
            self._connections.discard(connection)
            writer.close()


class Passage(TcpServer):
    """Forwards every connection to another server, and closes it when one direction ends.

    Args:
        backend: that server's host and port; a new value is used by new connections.
    """

    def __init__(self, backend: tuple[str, int], piece: int = PIECE) -> None:
        self.backend = backend
        super().__init__(piece)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection(*self.backend, limit=self._piece)
        ways = [*map(asyncio.ensure_future, self._ways(reader, writer, far, forth))]
        try:
            ended, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ended:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            forth.close()

    def _ways(
        self,
        near: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        far: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> tuple[Way, Way]:
        """Return the coroutines that carry the bytes of one connection."""
        return self._inwards(near, forth), self._outwards(far, back)

    async def _inwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Forward what a client sends, until it ends."""
        await carry(source, sink, self._piece)

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Forward what the server answers, until it ends."""
        await carry(source, sink, self._piece)


async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, piece: int) -> None:
    """Copy data in pieces of at most `piece` bytes, until there is no more."""
    while data := await source.read(piece):
        sink.write(data)
        await sink.drain()
