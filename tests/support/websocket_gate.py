"""Gateway that lets clients reach a server over WebSockets, as Event Hubs does on port 443."""

import asyncio
import base64
import hashlib

from tcp_servers import HOST, Passage

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, CLOSE = 2, 8


class WebSocketGate(Passage):
    """Forwards bytes to a port of this machine.

    What the server sends is split into messages at arbitrary places, so that a message cannot be
    mistaken for a frame.

    Attributes:
        clients: number of clients that have connected.
    """

    def __init__(self, backend_port: int, *, message_size: int = 4999) -> None:
        self._message_size = message_size
        self.clients = 0
        super().__init__((HOST, backend_port))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepted(await reader.readuntil(b"\r\n\r\n")))
        self.clients += 1
        await super()._serve(reader, writer)

    async def _inwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while (message := await read_message(source)) is not None:
            sink.write(message)
            await sink.drain()

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(self._message_size):
            sink.write(message_of(data))
            await sink.drain()


def accepted(request: bytes) -> bytes:
    """Return the response to a client's request to speak AMQP over a WebSocket."""
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
    """Return one binary message of a server."""
    size = len(data)
    if size < 126:
        length = bytes([size])
    else:
        short = size <= 0xFFFF
        length = (b"\x7e" if short else b"\x7f") + size.to_bytes(2 if short else 8, "big")
    return bytes([0x80 | BINARY]) + length + data


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """Read one message of a client, which masks its data; None at the end."""
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
