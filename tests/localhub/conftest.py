"""A running hub, the two real consumers behind one face, and a peer that speaks frames."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

from eventhub_checkpoints.amqp.performatives import (
    AMQP_HEADER,
    RECEIVER,
    Attach,
    Begin,
    Body,
    Composite,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    decode_body,
    encode_frame,
    split_frame,
)
from eventhub_checkpoints.amqp.types import Described, Symbol
from eventhub_checkpoints.localhub import LocalHub
from prompt_client import prompt_client
from waiting import LIMIT, eventually

__all__ = ["prompt_client"]


class Reading:
    """A real consumer at work, sync or aio, with what it got and what it complained about."""

    def __init__(self, arguments: dict[str, Any], options: dict[str, Any]) -> None:
        self.events: list[tuple[str, Any]] = []
        self.errors: list[Exception] = []
        self._arguments = {
            "consumer_group": "$Default",
            "retry_total": 0,
            "load_balancing_interval": 0.1,
            **arguments,
        }
        self._options = options
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        raise NotImplementedError

    def numbers(self, partition_id: str = "0") -> list[int]:
        return [event.sequence_number for where, event in self.events if where == partition_id]

    def wait(self, count: int) -> list[Any]:
        eventually(lambda: len(self.events) >= count)
        return [event for _, event in self.events]

    def wait_for_error(self) -> Exception:
        eventually(lambda: self.errors)
        return self.errors[0]


class SyncReading(Reading):
    def _run(self) -> None:
        # The sync client polls its partitions in turn, this long each.
        self._client = EventHubConsumerClient(**self._arguments, socket_timeout=0.02)
        self._client.receive_batch(
            lambda context, events: self.events.extend((context.partition_id, e) for e in events),
            on_error=lambda context, error: self.errors.append(error),
            **self._options,
        )

    def close(self) -> None:
        self._client.close()
        self._thread.join()


class AioReading(Reading):
    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        client = AioConsumerClient(**self._arguments)
        work = asyncio.create_task(
            client.receive_batch(self._on_batch, on_error=self._on_error, **self._options)
        )
        await self._stop.wait()
        await client.close()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    async def _on_batch(self, context: Any, events: list[Any]) -> None:
        self.events.extend((context.partition_id, event) for event in events)

    async def _on_error(self, context: Any, error: Exception) -> None:
        self.errors.append(error)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _starter(kind: type[Reading]) -> Iterator[Callable[..., Reading]]:
    started = []

    def start(hub: LocalHub, client: Any = (), **options: Any) -> Reading:
        arguments = hub.client_arguments("orders") | dict(client)
        started.append(kind(arguments, {"starting_position": "-1"} | options))
        return started[-1]

    yield start
    # Each takes the client about a second.
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda reading: reading.close(), started))


@pytest.fixture(params=[SyncReading, AioReading], ids=["sync", "aio"])
def read(request: pytest.FixtureRequest) -> Iterator[Callable[..., Reading]]:
    """Start a real consumer of each variant: `read(hub, client={...}, **options)`."""
    yield from _starter(request.param)


@pytest.fixture
def read_sync() -> Iterator[Callable[..., Reading]]:
    """Start a real sync consumer."""
    yield from _starter(SyncReading)


@pytest.fixture
def read_aio() -> Iterator[Callable[..., Reading]]:
    """Start a real aio consumer."""
    yield from _starter(AioReading)


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    """A hub `orders` of two partitions, and the groups $Default and `audit`."""
    with LocalHub({"orders": 2}, consumer_groups=["audit"]) as running:
        yield running


class Peer:
    """A client that says exactly what a test wants it to say."""

    def __init__(self, hub: LocalHub, container_id: str = "peer") -> None:
        self._socket = socket.create_connection((hub.host, hub.port), timeout=LIMIT)
        self._buffer = b""
        self.send_raw(AMQP_HEADER)
        self.send(Open(container_id=container_id))
        assert self._exactly(8) == AMQP_HEADER
        self.opened = self.expect(Open)

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send(self, performative: Composite, channel: int = 0, payload: bytes = b"") -> None:
        self.send_raw(encode_frame(performative, channel, payload))

    def _more(self) -> bool:
        data = self._socket.recv(1 << 20)
        self._buffer += data
        return bool(data)

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            assert self._more(), "the hub closed the connection"
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def receive(self) -> tuple[int, Body]:
        """Give the next frame's channel and body."""
        while (frame := split_frame(self._buffer, 0, 1 << 21)) is None:
            assert self._more(), "the hub closed the connection"
        body = decode_body(self._buffer, frame)
        self._buffer = self._buffer[frame.end :]
        return frame.channel, body

    def expect(self, kind: type) -> Any:
        """Give the next frame, which has to be of a kind."""
        _, body = self.receive()
        assert isinstance(body.performative, kind), body
        return body.performative

    def begin(self, channel: int = 0, window: int = 5000) -> Begin:
        self.send(Begin(incoming_window=window, outgoing_window=5000), channel)
        return self.expect(Begin)

    def attach_reader(
        self,
        address: str = "orders/ConsumerGroups/$Default/Partitions/0",
        selector: str | None = None,
        epoch: int | None = None,
        handle: int = 0,
        channel: int = 0,
        **fields: Any,
    ) -> Attach:
        name = "apache.org:selector-filter:string"
        filters = {Symbol(name): Described(Symbol(name), selector)} if selector else None
        properties = None if epoch is None else {Symbol("com.microsoft:epoch"): epoch}
        wanted = Attach(
            name=f"link-{channel}-{handle}",
            handle=handle,
            role=RECEIVER,
            source=Source(address=address, filters=filters),
            target=Target(address="peer"),
            properties=properties,
            **fields,
        )
        self.send(wanted, channel)
        return self.expect(Attach)

    def credit(self, credit: int, handle: int = 0, channel: int = 0, **fields: Any) -> None:
        windows = {"next_incoming_id": 0, "incoming_window": 5000, "outgoing_window": 5000}
        flow = {**windows, "handle": handle, "delivery_count": 0, "link_credit": credit, **fields}
        self.send(Flow(**flow), channel)

    def payload(self) -> tuple[Transfer, bytes]:
        """Give the next delivery, whole."""
        _, body = self.receive()
        assert isinstance(body.performative, Transfer), body
        payload = body.payload
        while body.performative.more:
            _, body = self.receive()
            payload += body.payload
        return body.performative, payload

    def close(self) -> None:
        self._socket.close()

    def is_cut_off(self) -> bool:
        """Read to the end of the stream."""
        with suppress(ConnectionError):
            while self._more():
                pass
        return True


@pytest.fixture
def connect(hub: LocalHub) -> Iterator[Callable[..., Peer]]:
    """Connect a peer: `connect()`, or `connect(another_hub)`."""
    peers = []

    def start(to: LocalHub = hub, **options: Any) -> Peer:
        peers.append(Peer(to, **options))
        return peers[-1]

    yield start
    for peer in peers:
        peer.close()
