"""Hub with events behind a gate that fails in one way."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive import HubAddress
from tcp_servers import HOST, Passage

HUB, EVENTS = "orders", 200
NAMESPACE = "outages.servicebus.windows.net"
KEY = "SharedAccessKeyName=n;SharedAccessKey=a2V5"

AWAY = ("refused", "reset", "mute", "unknown", "handshake")
"""Faults that are an outage: refused and reset connections, silence, a host name that does not
resolve, and something that does not speak TLS."""
ANSWERS = ("key", "hub", "untrusted")
"""Refusals: of the key, of a hub that does not exist; and a certificate that is not trusted."""


class Gate(Passage):
    """Forwards connections to a server, unless it fails in one of the ways in `AWAY`.

    Attributes:
        attempts: connections that were accepted while it failed.
    """

    def __init__(self, backend: tuple[str, int]) -> None:
        self._flow = asyncio.Event()
        self._fault = ""
        self.attempts = 0
        super().__init__(backend)
        self._loop.call_soon_threadsafe(self._flow.set)

    def fail(self, fault: str) -> None:
        """Begin to fail; open connections are affected, too."""
        self._fault = fault
        if fault == "mute":
            self._loop.call_soon_threadsafe(self._flow.clear)
            return
        self.down()
        if fault in ("reset", "handshake"):
            self.up()

    def heal(self) -> None:
        """Forward connections again; what a mute gate has kept is forwarded, too."""
        self._fault = ""
        self._loop.call_soon_threadsafe(self._flow.set)
        self.up()

    @property
    def is_unknown(self) -> bool:
        """Return whether no name resolves."""
        return self._fault == "unknown"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += bool(self._fault)
        if self._fault == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        elif self._fault == "handshake":
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            await writer.drain()
        else:
            await super()._serve(reader, writer)

    async def _inwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._carried(source, sink)

    async def _outwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        await self._carried(source, sink)

    async def _carried(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(self._piece):
            await self._flow.wait()
            sink.write(data)
            await sink.drain()


@contextmanager
def resolving(gate: Gate) -> Iterator[None]:
    """Let no name resolve while the gate says so."""
    resolve = socket.getaddrinfo

    def unless_unknown(*arguments: Any, **named: Any) -> Any:
        if gate.is_unknown:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(*arguments, **named)

    with patch.object(socket, "getaddrinfo", unless_unknown):
        yield


@dataclass
class Place:
    """Hub behind a gate, with events, and how callers reach it.

    Attributes:
        hub: the hub.
        gate: in front of it.
        options: of Spark, for an address through the gate.
    """

    hub: LocalHub
    gate: Gate
    options: dict[str, str]

    def address(self, group: str = "known") -> HubAddress:
        """Return the address through the gate."""
        from eventhub_checkpoints.spark.options import parse_hub

        address = parse_hub({**self.options, "consumerGroup": group})
        assert isinstance(address, HubAddress)
        return address

    def consumer(self, kind: Any, **own: Any) -> Any:
        """Return a client of a kind through the gate."""
        return self.address()._open_consumer(kind, **own)

    def bodies(self) -> list[str]:
        """Return what was sent to the hub, besides its own events."""

        def work(server: Any) -> list[bytes]:
            hub = server.find(HUB)
            logs = [hub.partition(each) for each in hub.partition_ids]
            return [payload for log in logs for payload in log.payloads]

        payloads = b"".join(self.hub._call(work))
        return [
            name
            for name in (f"<{n}>" for n in range(EVENTS))
            for _ in range(payloads.count(name.encode()))
        ]


@contextmanager
def opened(fault: str) -> Iterator[Place]:
    """Yield a hub behind a gate; it speaks TLS if the fault is one of TLS."""
    tls = fault in ("handshake", "untrusted")
    with ExitStack() as stack:
        hub = stack.enter_context(
            LocalHub({HUB: 2}, consumer_groups=["known"], tls=tls, namespace=NAMESPACE)
        )
        gate = stack.enter_context(Gate((HOST, hub.port)))
        stack.enter_context(resolving(gate))
        for partition in hub.partition_ids(HUB):
            hub.publish(HUB, partition, [f"event {number}" for number in range(EVENTS)])
        if not tls:
            text = hub.connection_string(HUB).replace(f":{hub.port};", f":{gate.port};")
            yield Place(hub, gate, {"connectionString": text})
            return
        yield Place(
            hub,
            gate,
            {
                "fullyQualifiedNamespace": NAMESPACE,
                "eventHubName": HUB,
                "credential": KEY,
                "transportType": "Amqp",
                "customEndpointAddress": f"sb://{HOST}:{gate.port}",
                "connectionVerify": hub.ca_file,
            },
        )
