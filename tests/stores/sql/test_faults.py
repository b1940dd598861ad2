"""Databases that end connections, are full, are read-only, or say nothing."""

import resource
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from eventhub_checkpoints import StoreAccessError, StoreUnavailableError
from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.stores.sql import postgresql
from refusals import says
from small_disk import small_disk
from waiting import LIMIT, eventually

pytestmark = pytest.mark.waits


def end_connections(place: Any) -> int:
    rows = place.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    return len(rows)


def test_connections_that_were_ended_are_replaced(variant: Any, own: Any) -> None:
    drivers = ["postgresql"] if variant.name == "sync" else ["postgresql", "postgresql+asyncpg"]
    for driver in drivers:
        client = variant.open(own.url.replace("postgresql", driver, 1))
        mine = client.take_listed("0", driver)
        for number in range(3):
            assert end_connections(own) >= 1
            mine = client.claim("0", driver, mine["etag"])
            assert mine, "a renewal over a broken connection was lost"
            assert end_connections(own) >= 1
            client.save("0", number)
        assert client.position("0") == 2
        client.release(mine)


@pytest.mark.parametrize("has_time", [True, False], ids=["cancelled", "no time to cancel it"])
def test_a_request_that_waits_for_a_lock_is_given_up_and_ended(
    variant: Any, own: Any, monkeypatch: pytest.MonkeyPatch, has_time: bool
) -> None:
    if not has_time:
        monkeypatch.setattr(postgresql, "cancel_seconds", lambda: None)
    client = variant.open(own)
    client.save("0", 1)
    client.set(write_timeout=1.0)
    with own.engine.begin() as blocking:
        blocking.exec_driver_sql(f"SELECT 1 FROM {own.tables.checkpoint} FOR UPDATE")
        with pytest.raises(StoreUnavailableError):
            client.save("0", 2)
        # Nobody is left behind on the server who would write it later, however new.
        eventually(lambda: running(blocking) == 0)
    assert client.position("0") == 1


def running(connection: Any) -> int:
    """How many statements of other connections run: for a server of one's own."""
    # Otherwise a transaction goes on seeing the activity of its first look.
    connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
    found = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
    )
    return int(connection.exec_driver_sql(found).scalar())


@pytest.fixture
def demoted(own: Any) -> Iterator[Callable[[], None]]:
    """The server takes no writes in new connections; gives what heals it."""

    def heal() -> None:
        with own.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("SET default_transaction_read_only = off")
            connection.exec_driver_sql("ALTER ROLE test RESET default_transaction_read_only")

    own.execute("ALTER ROLE test SET default_transaction_read_only = on")
    yield heal
    heal()


def test_a_standby_is_said(variant: Any, own: Any, demoted: Any) -> None:
    client = variant.open(own, write_timeout=0.5)
    says(lambda: client.save("0", 1), StoreUnavailableError, "takes no writes: it is a standby")


def test_a_new_connection_is_tried_where_the_server_became_a_standby(
    variant: Any, own: Any, demoted: Any
) -> None:
    client = variant.open(own)
    assert client.position("0") is None  # over a connection that takes no writes
    demoted()
    client.save("0", 2)
    assert client.position("0") == 2


def test_all_connections_in_use_is_said(variant: Any, place: Any) -> None:
    engine = variant.engine(place, pool_size=1, max_overflow=0, pool_timeout=0.1)
    client = variant.open(engine, schema=place.tables.schema)
    client.save("0", 1)
    taken = variant.finished(start(engine.connect(), variant))
    client.set(write_timeout=0.5)
    try:
        says(lambda: client.save("0", 2), StoreUnavailableError, "are in use")
    finally:
        variant.finished(taken.close())
    client.set(write_timeout=LIMIT)
    client.save("0", 3)


def start(connection: Any, variant: Any) -> Any:
    return connection if variant.name == "sync" else connection.start()


def test_a_lock_that_another_program_holds_is_waited_for(variant: Any, sqlite: Any) -> None:
    client = variant.open(sqlite)
    client.save("0", 1)
    client.set(write_timeout=0.5)
    with sqlite.engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        held = "another program holds the file's lock"
        says(lambda: client.save("0", 2), StoreUnavailableError, held)
        assert client.position("0") == 1  # reading goes on
        other.rollback()
    client.set(write_timeout=LIMIT)
    client.save("0", 2)


def test_closing_leaves_no_connection_of_a_call_that_waits_for_a_lock(
    variant: Any, sqlite: Any
) -> None:
    client = variant.open(sqlite)
    client.save("0", 1)
    client.call("close")
    client = variant.open(sqlite, write_timeout=1.0, closes=False)
    engine = client.store.database._engine
    core = getattr(engine, "sync_engine", engine)
    connections, asked = Counter[str](), threading.Event()
    event.listen(core, "connect", lambda *_: connections.update(opened=1))
    event.listen(core, "close", lambda *_: connections.update(closed=1))
    event.listen(core, "before_cursor_execute", lambda *_: asked.set())
    with sqlite.engine.connect() as other, ThreadPoolExecutor() as pool:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        saving = pool.submit(client.save, "0", 2)
        assert asked.wait(LIMIT)
        client.call("close")
        with pytest.raises(StoreError):
            saving.result(LIMIT)
        other.rollback()
    assert connections["opened"] == connections["closed"] > 0
    assert variant.open(sqlite).position("0") == 1


def fill(client: Any) -> None:
    for number in range(10_000):
        client.save(f"{number:0200}", 1)


def test_a_full_disk_is_said_and_loses_nothing(variant: Any, sqlite: Any) -> None:
    engine = variant.engine(sqlite)

    @event.listens_for(getattr(engine, "sync_engine", engine), "connect")
    def limit(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA max_page_count = 40")
        cursor.close()

    client = variant.open(engine)
    client.save("first", 1)
    with pytest.raises(StoreError, match="disk is full; nothing was changed") as full:
        fill(client)
    assert type(full.value) is StoreError  # trying again would not help
    stored = int(sqlite.execute(f"SELECT count(*) FROM {sqlite.tables.checkpoint}")[0][0]) - 1
    assert stored > 10
    assert len(client.list_checkpoints()) == stored + 1
    assert client.position("first") == 1
    client.save("first", 2)  # a row that needs no room


@pytest.fixture
def full_soon(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    with small_disk(tmp_path / "small", "256k") as folder:
        yield folder


def test_a_full_file_system_is_said_and_goes_on_when_there_is_room(
    variant: Any, full_soon: Path
) -> None:
    filler = full_soon / "filler"
    filler.write_bytes(b"0" * 64 * 1024)
    client = variant.open(f"sqlite:///{full_soon}/positions.db", create_tables=True)
    client.save("first", 1)
    with pytest.raises(StoreError, match="disk is full; nothing was changed"):
        fill(client)
    kept = client.list_checkpoints()
    assert client.position("first") == 1
    filler.unlink()
    client.save("first", 2)
    assert client.position("first") == 2
    assert len(client.list_checkpoints()) == len(kept)


def test_a_limit_of_the_file_size_is_said(variant: Any, sqlite: Any) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    client = variant.open(sqlite)
    client.save("first", 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    try:
        with pytest.raises(StoreError, match="full; nothing was changed"):
            fill(client)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    client.save("first", 2)
    assert client.position("first") == 2


def test_a_file_that_may_not_be_written_is_said(variant: Any, sqlite: Any) -> None:
    variant.open(sqlite).save("0", 1)
    file = Path(sqlite.engine.url.database)
    client = variant.open(f"sqlite:///file:{file}?mode=ro&uri=true")
    assert client.position("0") == 1
    with pytest.raises(StoreAccessError, match="may not be written"):
        client.save("0", 2)


def test_a_server_that_is_not_there_is_unavailable(variant: Any) -> None:
    client = variant.open("postgresql://127.0.0.1:1/db", operation_timeout=0.5)
    refused = "connection was refused: check host and port"
    says(client.list_ownership, StoreUnavailableError, refused)


@pytest.mark.long
def test_a_silent_server_is_left_in_time_and_used_again(
    variant: Any, own_server: Any, leaves_in_time: Any
) -> None:
    drivers = ["postgresql"] if variant.name == "sync" else ["postgresql", "postgresql+asyncpg"]
    for driver in drivers:
        with own_server.place() as own:
            client = variant.open(own.url.replace("postgresql", driver, 1))
            leaves_in_time(client, own_server, 1.0)
