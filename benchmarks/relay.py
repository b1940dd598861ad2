"""Counts round trips: bytes pass through, and whoever sends after an answer waits for the next."""

import asyncio
import re

from tcp_servers import HOST, Passage, Way

SERVER = re.compile(r"(?<=//|.@)([^/@:,]+):(\d+)")


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
