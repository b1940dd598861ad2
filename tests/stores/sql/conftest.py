"""SQL stores of both variants on real databases, called the same way."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from backends.base import OwnServer, Place, ServerMissingError
from backends.postgres import Postgres
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.sql.url import DIALECTS
from stores_in_turn import DATABASES
from waiting import LIMIT, takes

OURS = {"sync": "eventhub_checkpoints", "aio": "eventhub_checkpoints.aio"}
DRIVERS = {
    variant: {name: f"{name}+{dialect.drivers[kind][0]}" for name, dialect in DIALECTS.items()}
    for variant, kind in (("sync", "sync"), ("aio", "async"))
}


@dataclass
class Variant:
    """One of sync and aio: its class, and where its calls run."""

    name: str
    loop: Loop
    scope: Scope
    opened: ExitStack = field(default_factory=ExitStack)

    @property
    def store(self) -> Any:
        """Our class."""
        return import_module(f"{OURS[self.name]}.sql").SqlCheckpointStore

    @property
    def open_store(self) -> Callable[..., Any]:
        """Our stores by URL."""
        return import_module(f"{OURS[self.name]}.registry").open_store

    def open(self, place: Any, *, closes: bool = True, **settings: Any) -> Client:
        """A store over a place, a URL or an engine; closed after the test."""
        target = place.url if isinstance(place, Place) else place
        client = Client(self.store(target, **settings), self.scope, self.loop)
        if closes:
            self.opened.callback(client.call, "close")
        return client

    def engine(self, place: Any, **options: Any) -> Any:
        """A ready engine to a place; disposed after the test. Its store needs the schema."""
        scheme, _, rest = place.url.partition("?")[0].partition("://")
        make = create_engine if self.name == "sync" else create_async_engine
        engine = make(f"{DRIVERS[self.name][scheme]}://{rest}", **options)
        self.opened.callback(lambda: self.loop.finished(engine.dispose()))
        return engine

    def finished(self, result: Any) -> Any:
        """What a call comes to."""
        return self.loop.finished(result)


@pytest.fixture(params=["sync", "aio"])
def variant(request: pytest.FixtureRequest, loop: Loop, scope: Scope) -> Iterator[Variant]:
    made = Variant(request.param, loop, scope)
    with made.opened:
        yield made


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, servers: Callable[[str], Any]) -> Iterator[Any]:
    """Tables of this test's own, in each database in turn."""
    with servers(request.param).place() as created:
        yield created


@pytest.fixture
def sqlite(servers: Callable[[str], Any]) -> Iterator[Any]:
    """Tables of this test's own in a file."""
    with servers("sqlite").place() as created:
        yield created


@pytest.fixture
def postgres(servers: Callable[[str], Any]) -> Iterator[Any]:
    """Tables of this test's own on PostgreSQL."""
    with servers("postgres").place() as created:
        yield created


@pytest.fixture
def mysql(servers: Callable[[str], Any]) -> Iterator[Any]:
    """Tables of this test's own on MariaDB."""
    with servers("mysql").place() as created:
        yield created


@pytest.fixture(scope="session")
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL that may be told anything, and asks the roles `asked` and `meek` to log in."""
    access = ["host all asked 127.0.0.1/32 scram-sha-256"]
    try:
        with Postgres.own(access=access) as running:
            yield running
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def own(own_server: Postgres) -> Iterator[Any]:
    """Tables of this test's own on that server."""
    with own_server.place() as created:
        yield created


@pytest.fixture
def leaves_in_time() -> Callable[[Client, OwnServer, float], None]:
    """Checks that a write ends within seconds while its server is silent, and goes on with it."""

    def check(client: Client, server: OwnServer, seconds: float) -> None:
        client.save("0", 1)
        client.set(write_timeout=seconds)
        server.pause()
        try:
            with takes(seconds / 2), pytest.raises(StoreUnavailableError):
                client.save("0", 2)
        finally:
            server.resume()
        client.set(write_timeout=LIMIT)
        client.save("0", 3)
        assert client.position("0") == 3

    return check
