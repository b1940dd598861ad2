"""A proxy for any protocol over TCP that cuts its connections after so many bytes."""

import asyncio
import threading
from collections import deque
from typing import Self


class TcpProxy:
    """Forwards bytes to one port of this machine; leaving the `with` block stops it.

    Every method may be called from any thread.

    Attributes:
        port: where clients connect, on 127.0.0.1.
        cuts: how many connections were cut off so far.
    """

    def __init__(self, backend_port: int) -> None:
        self._backend_port = backend_port
        self._limits: deque[int] = deque()
        self.cuts = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy")
        self._thread.start()
        self._connections: set[asyncio.Task[None]] = set()
        serving = asyncio.run_coroutine_threadsafe(self._serve(), self._loop)
        self._server = serving.result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut_after(self, *sizes: int) -> None:
        """Cut the next connections off, one after each so many bytes from the server."""
        self._limits.extend(sizes)

    def heal(self) -> None:
        """Cut no more connections than those whose end is settled already."""
        self._limits.clear()

    def stop(self) -> None:
        """Cut all connections and end the thread."""
        asyncio.run_coroutine_threadsafe(self._down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def _serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _down(self) -> None:
        self._server.close()
        for connection in (connections := [*self._connections]):
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        limit = self._limits.popleft() if self._limits else None
        writers = [back]
        try:
            far, forth = await asyncio.open_connection("127.0.0.1", self._backend_port)
            writers.append(forth)
            ways = (self._copied(near, forth, None), self._copied(far, back, limit))
            await asyncio.wait(
                [asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED
            )
        except (OSError, asyncio.CancelledError):
            pass  # the server is gone, or the proxy goes down: nobody waits for this task
        finally:
            self._connections.discard(task)
            for writer in writers:
                writer.transport.abort()

    async def _copied(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None
    ) -> None:
        """Copy until an end closes, or until so many bytes have been copied."""
        try:
            while data := await reader.read(65536 if limit is None else min(65536, limit)):
                writer.write(data)
                await writer.drain()
                limit = None if limit is None else limit - len(data)
                if limit == 0:
                    self.cuts += 1
                    return
        except OSError:
            pass  # one end is gone; the other one learns it by the closing
