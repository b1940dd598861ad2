"""Servers whose disk is full: one clear error, nothing confirmed is lost, and they go on after.

SQLite is in `tests/stores/sql/test_faults.py`, and a full memory of Redis in its own tests.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest

from backends import VARIANTS, OwnServer, Place, ServerMissingError, Variant
from backends.mysql import Mysql
from backends.postgres import Postgres
from backends.redis import LocalRedis
from campaigns import IS_CAMPAIGN
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.errors import StoreError, StoreUnavailableError
from eventhub_checkpoints.records import Scope
from small_disk import small_disk
from tmpfs import fill

pytestmark = pytest.mark.long

SECONDS = 2.0
LOGGED = ("--appendonly", "yes", "--appendfsync", "everysec")
MOST = 10_000


@contextmanager
def running(server: OwnServer, size: str) -> Iterator[Path]:
    """Run a server with its data on a small disk; yield its folder."""
    with small_disk(server.folder, size) as folder:
        try:
            server.start()
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        try:
            yield folder
        finally:
            server.stop()


@contextmanager
def opened(place: Place, variant: Variant, scope: Scope, loop: Loop) -> Iterator[Client]:
    client = Client(
        place.open(variant, operation_timeout=SECONDS, write_timeout=SECONDS), scope, loop
    )
    try:
        yield client
    finally:
        client.close()


def save_until_refused(client: Client, numbers: Iterator[int]) -> tuple[set[str], StoreError]:
    """Save checkpoints of new partitions; return those confirmed, and the error that ended it."""
    confirmed = set()
    for _ in range(MOST):
        partition_id = f"{next(numbers):0100}"
        try:
            client.save(partition_id, 1)
        except StoreError as error:
            return confirmed, error
        confirmed.add(partition_id)
    raise AssertionError("no write was refused")


def saved(client: Client) -> set[str]:
    return {row["partition_id"] for row in client.list_checkpoints()}


@pytest.fixture
def numbers() -> Iterator[int]:
    return count()


@contextmanager
def full(
    server: Postgres | Mysql,
    size: str,
    variant: Variant,
    scope: Scope,
    loop: Loop,
    numbers: Iterator[int],
) -> Iterator[tuple[Client, Path, set[str]]]:
    """Fill a server's disk; yield a client, the file to remove, and the partitions that are saved.

    The refused write has changed nothing, and said why.
    """
    with (
        running(server, size) as folder,
        server.place() as place,
        opened(place, variant, scope, loop) as client,
    ):
        client.save("first", 1)
        filler = fill(folder)
        confirmed, error = save_until_refused(client, numbers)
        confirmed.add("first")
        assert "disk is full; nothing was changed" in str(error)
        assert not isinstance(error, StoreUnavailableError)  # trying again would not help
        assert saved(client) == confirmed
        yield client, filler, confirmed


@pytest.mark.parametrize("variant", VARIANTS if IS_CAMPAIGN else ["sync"])
def test_postgres_without_room_for_data_or_log_goes_on(
    variant: Variant, scope: Scope, loop: Loop, numbers: Iterator[int]
) -> None:
    server = Postgres.own(durable=True)
    with full(server, "128m", variant, scope, loop, numbers) as (client, filler, confirmed):
        use_up_log(server.url)
        with pytest.raises(StoreUnavailableError):
            client.save("first", 2)
        filler.unlink()
        server.restart()
        client.save("first", 2)
        assert client.position("first") == 2
        assert saved(client) == confirmed


@pytest.mark.parametrize("variant", VARIANTS if IS_CAMPAIGN else ["sync"])
def test_mariadb_without_room_for_its_data_goes_on(
    variant: Variant, scope: Scope, loop: Loop, numbers: Iterator[int]
) -> None:
    server = Mysql.own(durable=True)
    with full(server, "384m", variant, scope, loop, numbers) as (client, filler, confirmed):
        filler.unlink()
        client.save("first", 2)
        server.restart()
        assert client.position("first") == 2
        assert saved(client) == confirmed


def use_up_log(url: str) -> None:
    """Write the server's log until it stops, because there is no room for more."""
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
        for _ in range(MOST):
            connection.execute("SELECT pg_logical_emit_message(true, '', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        raise AssertionError("the server has room for its log")


@pytest.mark.parametrize("variant", VARIANTS if IS_CAMPAIGN else ["aio"])
def test_redis_without_room_for_its_log_goes_on(
    variant: Variant, scope: Scope, loop: Loop, numbers: Iterator[int]
) -> None:
    server = LocalRedis(*LOGGED)
    with (
        running(server, "256k") as folder,
        server.place() as place,
        opened(place, variant, scope, loop) as client,
    ):
        client.save("first", 1)
        filler = fill(folder)
        confirmed, error = save_until_refused(client, numbers)
        assert isinstance(error, StoreUnavailableError)
        assert "cannot save its data to disk and refuses writes" in str(error)
        assert saved(client) >= confirmed | {"first"}
        filler.unlink()
        client.set(write_timeout=60.0)
        client.save("last", 1)
        assert saved(client) >= confirmed | {"first", "last"}
