"""Counts round trips: bytes pass through, and whoever sends after an answer waits for the next."""

import asyncio
import re
from collections.abc import Coroutine
from contextlib import closing, suppress
from threading import Thread
from typing import Any, Self

HOST = "127.0.0.1"
SERVER = re.compile(r"(?<=//|.@)([^/@:,]+):(\d+)")
PIECE = 2**16


class Relay:
    """A way to a server, run by a thread of its own.

    Args:
        url: a store's, with the server's host and port in it.

    Attributes:
        url: the same by way of the relay.
        trips: how often a connection was sent something since its last answer, until now.
    """

    def __init__(self, url: str) -> None:
        found = SERVER.search(url)
        assert found is not None, "the URL has no host with a port"
        self._host, self._port = found[1], int(found[2])
        self._before, self._after = url[: found.start()], url[found.end() :]
        self._loop = asyncio.new_event_loop()
        self.trips = 0

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._connected, HOST, 0))
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{self._before}{HOST}:{port}{self._after}"
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _stop(self) -> None:
        self._server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for one in connections:
            one.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connected(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, questions = await asyncio.open_connection(self._host, self._port)
        is_answered = True

        async def forward() -> None:
            nonlocal is_answered
            while piece := await client.read(PIECE):
                self.trips += is_answered
                is_answered = False
                questions.write(piece)
            questions.close()

        async def back() -> None:
            nonlocal is_answered
            while piece := await server.read(PIECE):
                is_answered = True
                answers.write(piece)
            answers.close()

        # Not left to the loop, which would report a cancelled connection as an error.
        with suppress(OSError, asyncio.CancelledError), closing(questions), closing(answers):
            await asyncio.gather(forward(), back())
