"""Relays to a server: one counts round trips, the other makes them as long as to another region."""

import asyncio
import re

from tcp_servers import HOST, Passage, Way

SERVER = re.compile(r"(?<=//|.@)([^/@:,]+):(\d+)")
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
PIECE = 2**20


class Relay(Passage):
    """A way to a server.

    Args:
        url: a store's, with the server's host and port in it.

    Attributes:
        url: the same by way of the relay.
        trips: how often a connection was sent something since its last answer, until now.
    """

    def __init__(self, url: str) -> None:
        found = SERVER.search(url)
        assert found is not None, "the URL has no host with a port"
        self.trips = 0
        super().__init__((found[1], int(found[2])))
        self.url = f"{url[: found.start()]}{HOST}:{self.port}{url[found.end() :]}"

    def _ways(
        self,
        near: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        far: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> tuple[Way, Way]:
        is_answered = True

        async def ask() -> None:
            nonlocal is_answered
            while piece := await near.read(self._piece):
                self.trips += is_answered
                is_answered = False
                forth.write(piece)

        async def answer() -> None:
            nonlocal is_answered
            while piece := await far.read(self._piece):
                is_answered = True
                back.write(piece)

        return ask(), answer()


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
