"""A gate that lets clients reach a server over WebSockets, as Event Hubs does on port 443."""

import asyncio
import base64
import hashlib
import threading
from typing import Self

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, CLOSE = 2, 8


class WebSocketGate:
    """Passes bytes on to a port of this machine; leaving the `with` block stops it.

    What the server sends goes out in messages that end anywhere, so that none may be taken for
    a frame.

    Attributes:
        port: where clients connect, on 127.0.0.1.
        clients: how many have connected.
    """

    def __init__(self, backend_port: int, *, message_size: int = 4999) -> None:
        self._backend_port, self._message_size = backend_port, message_size
        self.clients = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="websocket-gate")
        self._thread.start()
        self._connections: set[asyncio.Task[None]] = set()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

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
        writers = [back]
        try:
            back.write(accepted(await near.readuntil(b"\r\n\r\n")))
            self.clients += 1
            far, forth = await asyncio.open_connection("127.0.0.1", self._backend_port)
            writers.append(forth)
            ways = (self._inwards(near, forth), self._outwards(far, back))
            await asyncio.wait(
                [asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED
            )
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # one side is gone, or the gate goes down: nobody waits for this task
        finally:
            self._connections.discard(task)
            for writer in writers:
                writer.transport.abort()

    async def _inwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (message := await read_message(reader)) is not None:
                writer.write(message)
                await writer.drain()
        except (OSError, EOFError):
            pass  # the client is gone

    async def _outwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(self._message_size):
                writer.write(message_of(data))
                await writer.drain()
        except OSError:
            pass  # the client is gone


def accepted(request: bytes) -> bytes:
    """The answer to a client's request to speak AMQP over a WebSocket."""
    lines = request.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    key = headers["Sec-WebSocket-Key"].encode()
    proof = base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {proof}\r\n"
        f"Sec-WebSocket-Protocol: {headers['Sec-WebSocket-Protocol']}\r\n\r\n"
    ).encode()


def message_of(data: bytes) -> bytes:
    """One binary message of a server."""
    size = len(data)
    if size < 126:
        length = bytes([size])
    else:
        short = size <= 0xFFFF
        length = (b"\x7e" if short else b"\x7f") + size.to_bytes(2 if short else 8, "big")
    return bytes([0x80 | BINARY]) + length + data


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """One message of a client, which masks what it sends; None at the last."""
    kind, length = await reader.readexactly(2)
    size = length & 0x7F
    if size >= 126:
        more = await reader.readexactly(2 if size == 126 else 8)
        size = int.from_bytes(more, "big")
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    if kind & 0x0F == CLOSE:
        return None
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
