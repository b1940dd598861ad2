"""Faults that a fault proxy applies to a request instead of forwarding it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from http_messages import Message, read_response


@dataclass(slots=True)
class Request:
    """Request that arrived; its status is `None` until it is answered, or if it never is."""

    method: str
    target: str
    head: bytes = b""
    status: int | None = None


@dataclass(slots=True)
class Backend:
    """Connection to the server that belongs to one connection of a client."""

    host: str
    port: int
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, message: Message) -> Message:
        """Send one request; return the response."""
        if self.streams is None or self.streams[0].at_eof():
            self.close()
            self.streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.streams
        writer.write(message.head + message.body)
        return await read_response(reader, message.method)

    def close(self) -> None:
        """Close it, if it is open."""
        if self.streams is not None:
            self.streams[1].close()


@dataclass(slots=True)
class Exchange:
    """Request in progress, as a fault sees it."""

    message: Message
    backend: Backend
    seconds_per_byte: float = 0.0

    async def forward(self) -> Message:
        """Let the server execute it; return its response."""
        return await self.backend.ask(self.message)


Act = Callable[[Exchange], Awaitable[Message | None]]
"""Returns the response to send, or `None` to close the connection instead."""


@dataclass(slots=True, eq=False)
class Fault:
    """Matching requests, and what happens to them once one of the methods was called.

    Attributes:
        method: such as `PUT`; `None` for any.
        path: string that the path or the query contains.
        times: number of requests after which the fault ends; `None` for never.
        hits: number of requests that it has matched.
    """

    method: str | None = None
    path: str = ""
    times: int | None = None
    hits: int = 0
    act: Act | None = None

    def takes(self, request: Request) -> bool:
        """Return whether the fault applies to this request."""
        return (
            self.act is not None
            and (self.times is None or self.hits < self.times)
            and self.method in (None, request.method)
            and self.path in request.target
        )

    def refuse(self, status: int, code: str) -> Self:
        """Answer with this status and `x-ms-error-code`, without contacting the server."""
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>on order</Message></Error>"
        head = (
            f"HTTP/1.1 {status} {code}\r\nx-ms-error-code: {code}\r\n"
            f"Content-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()

        async def act(exchange: Exchange) -> Message | None:
            return Message(head, b"" if exchange.message.method == "HEAD" else body.encode())

        return self._by(act)

    def drop(self) -> Self:
        """Close the connection instead of answering, without contacting the server."""

        async def act(exchange: Exchange) -> Message | None:
            return None

        return self._by(act)

    def lose_answer(self) -> Self:
        """Let the server execute the request, then close the connection instead of answering."""

        async def act(exchange: Exchange) -> Message | None:
            await exchange.forward()
            return None

        return self._by(act)

    def hang(self, *, executed: bool = False) -> Self:
        """Never answer and never close; if `executed`, the server executes the request."""

        async def act(exchange: Exchange) -> Message | None:
            if executed:
                await exchange.forward()
            await asyncio.Event().wait()
            return None

        return self._by(act)

    def together(self, count: int) -> Self:
        """Hold requests until so many have come, and then let all pass."""
        gate = asyncio.Event()

        async def act(exchange: Exchange) -> Message | None:
            if self.hits >= count:
                gate.set()
            await gate.wait()
            return await exchange.forward()

        return self._by(act)

    def drip(self, seconds_per_byte: float) -> Self:
        """Send the server's response byte by byte."""

        async def act(exchange: Exchange) -> Message | None:
            exchange.seconds_per_byte = seconds_per_byte
            return await exchange.forward()

        return self._by(act)

    def wait(self, seconds: float) -> Self:
        """Let the server execute the request at once, but delay its response."""

        async def act(exchange: Exchange) -> Message | None:
            answer = await exchange.forward()
            await asyncio.sleep(seconds)
            return answer

        return self._by(act)

    def _by(self, act: Act) -> Self:
        self.act = act
        return self
