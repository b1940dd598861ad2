"""PostgreSQL with a synchronous standby that is away: a commit only one server has is not saved."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from backends import Place, ServerMissingError, Variant
from backends.postgres import Postgres
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.records import Scope
from waiting import LIMIT

WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
DRIVERS: list[tuple[Variant, str]] = [("sync", "psycopg"), ("aio", "psycopg"), ("aio", "asyncpg")]
EACH_DRIVER = pytest.mark.parametrize(
    "client", [("sync", "psycopg"), ("aio", "asyncpg")], indirect=True, ids="-".join
)
"""For what takes its time: the two variants of psycopg wait in the same way."""
BOUND = 1.0
"""Seconds that a call of a store may take."""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        with Postgres.own(durable=True) as running:
            yield running
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def place(server: Postgres) -> Iterator[Place]:
    with server.place() as created:
        yield created


@pytest.fixture(params=DRIVERS, ids="-".join)
def client(
    request: pytest.FixtureRequest, place: Place, scope: Scope, loop: Loop
) -> Iterator[Client]:
    variant, driver = request.param
    place.url = place.url.replace("postgresql:", f"postgresql+{driver}:")
    client = Client(place.open(variant), scope, loop)
    client.save("other", 1)
    client.set(operation_timeout=BOUND, write_timeout=BOUND)
    yield client
    client.close()


def admin(server: Postgres, statement: str) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        result = connection.execute(statement)
        return result.fetchall() if result.description else None


def wait_for(server: Postgres, standby: str, wait: Callable[..., Any]) -> None:
    admin(server, f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'")
    admin(server, "SELECT pg_reload_conf()")
    wait(lambda: admin(server, "SHOW synchronous_standby_names") == [(standby,)])


@pytest.fixture
def alone(server: Postgres, client: Client, wait: Callable[..., Any]) -> Iterator[None]:
    """Every commit waits for a standby that does not exist; the client has its tables before."""
    wait_for(server, "nobody", wait)
    yield
    wait_for(server, "", wait)


@contextmanager
def interrupted(server: Postgres, how: str) -> Iterator[None]:
    """Interrupt each commit that waits for the standby, as soon as it does."""
    over = threading.Event()
    calls = []

    def interrupt() -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            while not over.wait(0.01):
                calls.extend(connection.execute(f"SELECT {how}(pid) {WAITING}").fetchall())

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert calls


@pytest.mark.long
@EACH_DRIVER
@pytest.mark.parametrize("how", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_commit_whose_wait_is_interrupted_is_not_confirmed(
    server: Postgres, alone: None, client: Client, how: str
) -> None:
    with interrupted(server, how):
        assert client.claim_ownership([client.proposal("0", "me")]) == []
        assert client.claim_ownership(client.proposals("12", "me")) == []
        with pytest.raises(StoreUnavailableError):
            client.save("0", 5)
        with pytest.raises(StoreUnavailableError):
            client.save("other", 2)


@pytest.mark.long
@EACH_DRIVER
def test_nor_is_one_that_the_store_itself_gives_up(
    server: Postgres, alone: None, client: Client
) -> None:
    assert client.claim_ownership(client.proposals("01", "me")) == []
    with pytest.raises(StoreUnavailableError):
        client.save("0", 5)


def test_what_was_not_confirmed_is_confirmed_when_the_standby_has_it(
    server: Postgres, alone: None, client: Client, wait: Callable[..., Any]
) -> None:
    client.set(operation_timeout=LIMIT, write_timeout=LIMIT)
    seen: list[Any] = []

    def call() -> None:
        seen.extend(client.claim_ownership([client.proposal("0", "me")]))
        client.save("0", 5)

    caller = threading.Thread(target=call)
    caller.start()
    wait(lambda: admin(server, f"SELECT pg_cancel_backend(pid) {WAITING}"))
    wait(lambda: admin(server, f"SELECT pid {WAITING}"))
    assert not seen
    wait_for(server, "", wait)
    caller.join()
    assert [row["owner_id"] for row in seen] == ["me"]
    assert client.position("0") == 5
