"""A way to a local hub that takes as long as one to another region; its width is not limited."""

import asyncio
import re

from tcp_servers import HOST, Passage

PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
PIECE = 2**20


class FarAway(Passage):
    """A relay that holds all bytes back in both directions.

    Args:
        connection_string: of any hub of the server.
        round_trip: seconds to the server and back.
    """

    def __init__(self, connection_string: str, round_trip: float) -> None:
        found = PORT.search(connection_string)
        assert found is not None, "the connection string has no port"
        self._one_way = round_trip / 2
        super().__init__((HOST, int(found[0])), PIECE)

    def address_of(self, connection_string: str) -> str:
        """The connection string of a hub by way of the relay."""
        return PORT.sub(str(self.port), connection_string)

    async def _inwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        underway: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivering = asyncio.ensure_future(self._deliver(underway, sink))
        try:
            while piece := await source.read(self._piece):
                underway.put_nowait((self._loop.time() + self._one_way, piece))
            underway.put_nowait((self._loop.time() + self._one_way, b""))
            await delivering
        finally:
            delivering.cancel()

    _outwards = _inwards

    async def _deliver(
        self, underway: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter
    ) -> None:
        while True:
            due, piece = await underway.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            if not piece:
                return
            sink.write(piece)
