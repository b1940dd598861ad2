"""HTTP/1.1 messages as bytes: as much as a proxy needs to forward them one by one."""

import asyncio
import re
from dataclasses import dataclass
from typing import Self

LENGTH = re.compile(rb"\r\nContent-Length:[ \t]*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\nTransfer-Encoding:[^\r]*chunked", re.IGNORECASE)
CLOSING = re.compile(rb"\r\nConnection:[ \t]*close", re.IGNORECASE)
BODILESS = {204, 304}


@dataclass(frozen=True, slots=True)
class Message:
    """Request or response; the body includes its chunk lines, if it is chunked."""

    head: bytes
    body: bytes

    @property
    def closes(self) -> bool:
        """Return whether its sender closes the connection after it."""
        return CLOSING.search(self.head) is not None

    @property
    def method(self) -> str:
        """Method of a request."""
        return self.head[: self.head.index(b" ")].decode("ascii")

    @property
    def target(self) -> str:
        """Path and query of a request, as they were sent."""
        return self.head.split(b" ", 2)[1].decode("ascii")

    @property
    def status(self) -> int:
        """Status of a response."""
        return int(self.head[9:12])

    def header(self, name: str) -> str | None:
        """Return the value of a header, whose name is not case-sensitive."""
        found = _header(name).search(self.head)
        return found[1].decode("latin-1") if found else None

    def with_header(self, name: str, value: str | None) -> Self:
        """Return the same message with this header, or without it."""
        line = b"" if value is None else f"\r\n{name}: {value}".encode("latin-1")
        head = _header(name).sub(b"", self.head)
        return type(self)(head[:-4] + line + head[-4:], self.body)


def _header(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\r\n" + re.escape(name.encode()) + rb":[ \t]*([^\r]*)", re.IGNORECASE)


async def read_request(reader: asyncio.StreamReader) -> Message | None:
    """Return the next request of a connection; `None` if the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    return Message(head, await _read_body(reader, head) or b"")


async def read_response(reader: asyncio.StreamReader, method: str) -> Message:
    """Return the response to a request of this method."""
    head = await reader.readuntil(b"\r\n\r\n")
    if method == "HEAD" or int(head[9:12]) in BODILESS:
        return Message(head, b"")
    body = await _read_body(reader, head)
    return Message(head, await reader.read(-1) if body is None else body)


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> bytes | None:
    """Return the body, or `None` if the head gives no length."""
    if length := LENGTH.search(head):
        return await reader.readexactly(int(length[1]))
    if CHUNKED.search(head):
        return await _read_chunks(reader)
    return None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
        if (size := int(line.split(b";")[0], 16)) == 0:
            break
        parts.append(await reader.readexactly(size + 2))
    while parts[-1] != b"\r\n":  # trailers, then an empty line
        parts.append(await reader.readuntil(b"\r\n"))
    return b"".join(parts)
