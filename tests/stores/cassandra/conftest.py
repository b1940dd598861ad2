"""Stores of both variants over one keyspace that the tests of this folder share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("cassandra", reason="cassandra-driver is not installed")

from backends import Backend, Variant
from backends.cassandra import Cassandra, Keyspace
from eventhub_checkpoints import cassandra
from eventhub_checkpoints.aio import cassandra as aio_cassandra
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.records import Scope

KINDS = {
    "sync": cassandra.CassandraCheckpointStore,
    "aio": aio_cassandra.CassandraCheckpointStore,
}


@pytest.fixture(scope="session")
def server(servers: Callable[[str], Backend]) -> Cassandra:
    found = servers("cassandra")
    assert isinstance(found, Cassandra)
    return found


@pytest.fixture(scope="session")
def keyspace(server: Cassandra) -> Iterator[Keyspace]:
    """With tables; a test that harms it takes one of its own."""
    with server.place() as created:
        yield created


@pytest.fixture
def client(variant: Variant, loop: Loop, scope: Scope) -> Iterator[Callable[..., Client]]:
    """Makes clients of the variant's store, with this test's scope; they are closed after it."""
    with ExitStack() as opened:

        def make(place: Keyspace | None = None, **settings: Any) -> Client:
            store = place.open(variant, **settings) if place else KINDS[variant](**settings)
            made = Client(store, scope, loop)
            opened.callback(made.close)
            return made

        yield make
