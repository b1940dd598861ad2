"""Redis stores of both variants, on servers of this machine that a test may harm."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import pytest

from backends import ServerMissingError, Variant
from backends.redis import LocalRedis, RedisPlace
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope

OURS = {"sync": "eventhub_checkpoints.redis", "aio": "eventhub_checkpoints.aio.redis"}
DRIVERS = {"sync": "redis", "aio": "redis.asyncio"}
SCOPE = Scope("ns.servicebus.windows.net", "Orders", "$Default")


def started(opened: ExitStack, *options: str) -> LocalRedis:
    """A server, or a reason to skip."""
    try:
        return opened.enter_context(LocalRedis(*options))
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def server() -> Iterator[LocalRedis]:
    """The server that tests share, each with a namespace of its own."""
    with ExitStack() as opened:
        yield started(opened)


@pytest.fixture
def start() -> Iterator[Callable[..., LocalRedis]]:
    """Starts servers of this test's own, with options."""
    with ExitStack() as opened:
        yield lambda *options: started(opened, *options)


@pytest.fixture(scope="module")
def spare() -> Iterator[LocalRedis]:
    """A server that a file's tests may set up as they like, as long as they set it back."""
    with ExitStack() as opened:
        yield started(opened)


@pytest.fixture
def place(server: LocalRedis) -> Iterator[RedisPlace]:
    with server.place() as created:
        yield created


class Opener:
    """Opens stores of one variant, and closes what it opened."""

    def __init__(self, variant: Variant, loop: Loop, opened: ExitStack) -> None:
        self.variant = variant
        self.loop = loop
        self.opened = opened

    @property
    def store(self) -> Any:
        """Our class."""
        return import_module(OURS[self.variant]).RedisCheckpointStore

    @property
    def driver(self) -> Any:
        """The driver's module."""
        return import_module(DRIVERS[self.variant])

    def __call__(self, url: str = "", **settings: Any) -> Client:
        """A store in the hands of a client."""
        client = Client(self.store(url, **settings), SCOPE, self.loop)
        self.opened.callback(client.close)
        return client

    def ready(self, client: Any) -> Any:
        """A client of the driver, which is closed after the test."""
        self.opened.callback(lambda: self.finished(getattr(client, "aclose", client.close)()))
        return client

    def finished(self, result: Any) -> Any:
        """What a call of the driver comes to."""
        return self.loop.finished(result)


@pytest.fixture
def opener(variant: Variant, loop: Loop) -> Iterator[Opener]:
    with ExitStack() as opened:
        yield Opener(variant, loop, opened)


@pytest.fixture
def client(opener: Opener, place: RedisPlace) -> Client:
    """A store on the shared server."""
    return opener(place.url)
