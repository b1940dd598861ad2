"""HTTP proxy that wants a password, as companies have them between their programs and Azure."""

import asyncio
import base64
import re

from tcp_servers import HOST, Passage

HEAD_END = b"\r\n\r\n"
REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0"


class ForwardProxy(Passage):
    """Forwards requests without a body, and tunnels, to one port of this machine.

    Args:
        backend_port: where everything goes, whatever host a client names.
        password: user and password, as in `user:password`.

    Attributes:
        served: number of requests and tunnels that were forwarded.
        refused: number of those without the password.
    """

    def __init__(self, backend_port: int, password: str) -> None:
        self._expected = b"Basic " + base64.b64encode(password.encode())
        self.served = self.refused = 0
        super().__init__((HOST, backend_port))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(HEAD_END)
        if self._expected not in head:
            self.refused += 1
            writer.write(REFUSED + HEAD_END)
            await writer.drain()
            return
        self.served += 1
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 OK" + HEAD_END)
        else:
            # A connection serves one request, because only the first one comes through here.
            head = re.sub(rb"(?i)\r\n(proxy-authorization|connection):[^\r]*", b"", head)
            head = re.sub(rb"http://[^/]+", b"", head, count=1)
            reader.feed_data(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        await super()._serve(reader, writer)
