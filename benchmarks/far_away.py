"""A way to a local hub that takes as long as one to another region; its width is not limited."""

import asyncio
import re
from contextlib import closing, suppress
from threading import Thread
from typing import Self

HOST = "127.0.0.1"
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
PIECE = 2**20


class FarAway:
    """A relay, run by a thread of its own, that holds all bytes back in both directions.

    Args:
        connection_string: of any hub of the server.
        round_trip: seconds to the server and back.
    """

    def __init__(self, connection_string: str, round_trip: float) -> None:
        found = PORT.search(connection_string)
        assert found is not None, "the connection string has no port"
        self._server_port = int(found[0])
        self._one_way = round_trip / 2
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._connected, HOST, 0, limit=PIECE)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self._port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        # The process ends with it, and so do its connections.
        self._loop.call_soon_threadsafe(self._loop.stop)

    def address_of(self, connection_string: str) -> str:
        """The connection string of a hub by way of the relay."""
        return PORT.sub(str(self._port), connection_string)

    async def _connected(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, questions = await asyncio.open_connection(HOST, self._server_port, limit=PIECE)
        with suppress(OSError), closing(questions), closing(answers):
            await asyncio.gather(self._carry(client, questions), self._carry(server, answers))

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        underway: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivering = asyncio.ensure_future(self._deliver(underway, sink))
        while piece := await source.read(PIECE):
            underway.put_nowait((self._loop.time() + self._one_way, piece))
        underway.put_nowait((self._loop.time() + self._one_way, b""))
        await delivering

    async def _deliver(
        self, underway: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter
    ) -> None:
        while True:
            due, piece = await underway.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            if not piece:
                sink.close()
                return
            sink.write(piece)
