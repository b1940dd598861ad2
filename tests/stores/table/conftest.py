"""Table stores of both variants on a real Azurite, called the same way."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from backends import Backend, Variant
from backends.table import Table, TablePlace
from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope
from fault_proxy import FaultProxy

OPEN = {"sync": open_store, "aio": aio.open_store}


@pytest.fixture(scope="session")
def server(servers: Callable[[str], Backend]) -> Table:
    found = servers("table")
    assert isinstance(found, Table)
    return found


@pytest.fixture(scope="session")
def table(server: Table) -> Iterator[TablePlace]:
    """The table that the tests of this folder share; one that harms it takes one of its own."""
    with server.place() as created:
        yield created


@pytest.fixture
def proxy(server: Table) -> Iterator[FaultProxy]:
    """A proxy in front of the server that counts requests and can be told to misbehave."""
    with FaultProxy(server.azurite.endpoint) as running:
        yield running


@pytest.fixture
def proxied(table: TablePlace, proxy: FaultProxy) -> str:
    """The URL of the table behind the proxy."""
    return f"table+{proxy.endpoint}/{table.url.rpartition('/')[2]}"


@pytest.fixture
def client(variant: Variant, loop: Loop, scope: Scope) -> Iterator[Callable[..., Client]]:
    """Makes clients of the variant's store, with this test's scope; they are closed after it."""
    with ExitStack() as opened:

        def make(url: str, *, names: Scope = scope, **settings: Any) -> Client:
            made = Client(OPEN[variant](url, **settings), names, loop)
            opened.callback(made.close)
            return made

        yield make
