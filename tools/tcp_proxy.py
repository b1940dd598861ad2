"""TCP proxy for any protocol that cuts its connections after a number of bytes."""

import asyncio
from collections import deque

from tcp_servers import HOST, Passage


class TcpProxy(Passage):
    """Forwards bytes to one port of this machine.

    Attributes:
        cuts: number of connections that were cut off so far.
    """

    def __init__(self, backend_port: int) -> None:
        self._limits: deque[int] = deque()
        self.cuts = 0
        super().__init__((HOST, backend_port))

    def cut_after(self, *sizes: int) -> None:
        """Cut the next connections off, each after its number of bytes from the server."""
        self._limits.extend(sizes)

    def heal(self) -> None:
        """Cut off no more connections than those already chosen."""
        self._limits.clear()

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        if not self._limits:
            await super()._outwards(source, sink)
            return
        left = self._limits.popleft()
        while data := await source.read(min(self._piece, left)):
            sink.write(data)
            await sink.drain()
            left -= len(data)
            if not left:
                self.cuts += 1
                return
