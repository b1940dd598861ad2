"""What is MySQL's own: names, rights, locks, ended connections, and a server that is silent."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from sqlalchemy import event, make_url

from backends.base import ServerMissingError
from backends.mysql import Mysql
from eventhub_checkpoints import StoreAccessError, StoreNotReadyError, StoreUnavailableError
from eventhub_checkpoints.errors import StoreError
from eventhub_checkpoints.stores.sql import mysql as dialect
from refusals import says
from waiting import LIMIT, eventually

pytestmark = pytest.mark.waits

GRANTS = "SELECT, INSERT, UPDATE"
TABLES = ("ownership", "checkpoint")
MANY = 64
HEADER_BYTES = 4
"""Size of what every packet begins with."""


@pytest.fixture(scope="session")
def own_mysql() -> Iterator[Mysql]:
    """A server that may be told anything."""
    try:
        with Mysql.own() as running:
            yield running
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def own(own_mysql: Mysql) -> Iterator[Any]:
    """Tables of this test's own on that server."""
    with own_mysql.place() as created:
        yield created


def test_names_differ_by_case_accent_and_trailing_space(variant: Any, mysql: Any) -> None:
    client = variant.open(mysql)
    ids = ["a", "A", "á", "a ", "\uff41", "日本"]
    won = client.claim_ownership([client.proposal(one, "me") for one in ids])
    assert [row["partition_id"] for row in won] == ids
    assert len(client.claim_ownership([{**row, "owner_id": "me"} for row in won])) == len(ids)
    for number, partition_id in enumerate(ids):
        client.save(partition_id, number)
    assert [client.position(one) for one in ids] == [*range(len(ids))]


def test_a_name_that_is_too_long_is_refused_and_never_cut(variant: Any, mysql: Any) -> None:
    client = variant.open(mysql)
    longest = "x" * 128
    client.save(longest, 1)
    with pytest.raises(StoreError, match="a name is longer than its column"):
        client.save(longest + "y", 2)
    assert client.position(longest) == 1


def test_the_mode_and_time_zone_of_the_server_change_nothing(variant: Any, own: Any) -> None:
    own.execute("SET GLOBAL time_zone = '+05:00'")
    own.execute("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'")
    try:
        client = variant.open(own)
        client.save("it's a \u0022name", 1)
        mine = client.take("0", "a")
        (row,) = client.list_ownership()
        assert abs(since(row["last_modified_time"])) < SHIFT
        (stored,) = own.execute(f"SELECT last_modified_time FROM {own.tables.ownership}")
        assert abs(since(stored[0])) < SHIFT
        assert client.claim("0", "a", mine["etag"])
        with pytest.raises(StoreError, match="longer than its column"):
            client.save("x" * 129, 1)
    finally:
        own.execute("SET GLOBAL time_zone = 'SYSTEM'")
        own.execute("SET GLOBAL sql_mode = DEFAULT")


SHIFT = 900
"""Seconds; a shift by a time zone is not less."""


def since(moment: float) -> float:
    """Seconds from a moment to now."""
    return time.time() - moment


@pytest.fixture
def meek(own: Any) -> Iterator[str]:
    """A user with the rights that `docs/reference/sql.md` grants, and no other; gives its URL."""
    own.execute("CREATE USER meek IDENTIFIED BY 'hush'")
    for table in TABLES:
        own.execute(f"GRANT {GRANTS} ON {own.tables.quoted(table)} TO meek")
    yield own.url.replace("//root@", "//meek:hush@")
    own.execute("DROP USER meek")


def test_the_documented_rights_are_enough(variant: Any, meek: str) -> None:
    client = variant.open(meek)
    client.call("verify")
    mine = client.take_listed("0", "a")
    client.claim_ownership([client.proposal(str(n), "a") for n in range(MANY)])
    client.save("0", 1)
    client.save("0", 2)
    client.save("0", 1, force=True)
    mine = client.claim("0", "a", mine["etag"])
    assert client.release(mine)
    assert client.position("0") == 1


@pytest.mark.parametrize("missing", ["SELECT", "INSERT", "UPDATE"])
@pytest.mark.parametrize("table", TABLES)
def test_verifying_names_a_right_that_is_missing(
    variant: Any, own: Any, meek: str, table: str, missing: str
) -> None:
    own.execute(f"REVOKE {missing} ON {own.tables.quoted(table)} FROM meek")
    with pytest.raises(StoreAccessError, match="lacks a right; this takes") as refused:
        variant.open(meek).call("verify")
    assert missing in str(refused.value)
    assert f"eventhub_checkpoints_{table}" in str(refused.value)


def test_deleting_takes_a_right_of_its_own(variant: Any, own: Any, meek: str) -> None:
    client = variant.open(meek)
    with pytest.raises(StoreAccessError, match="this takes SELECT and DELETE"):
        client.call("delete_scope", *client.scope.as_dict().values())


def test_a_login_that_is_refused_is_reported_at_once(variant: Any, own: Any, meek: str) -> None:
    with pytest.raises(StoreAccessError, match="refused the login") as refused:
        variant.open(meek.replace("hush", "whisper")).list_ownership()
    assert "whisper" not in f"{refused.value} {refused.value.__cause__!r}"
    calls: list[str] = []

    def password() -> str:
        calls.append("hush")
        return calls[-1]

    client = variant.open(meek.replace(":hush", ""), credential=password)
    client.save("0", 1)
    assert len(calls) == 1
    with pytest.raises(StoreNotReadyError, match="the database does not exist"):
        variant.open(own.url.replace(own.database, "nowhere")).list_ownership()


def test_a_password_is_not_sent_to_a_server_without_tls(variant: Any, meek: str) -> None:
    with pytest.raises(StoreAccessError, match="no encrypted connection"):
        variant.open(f"{meek}?ssl=true").list_ownership()


def end_connections(place: Any) -> int:
    rows = place.execute(
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user <> ''"
    )
    ended = 0
    for (number,) in rows:
        try:
            place.execute(f"KILL {number}")
            ended += 1
        except Exception:  # it has ended by itself
            continue
    return ended


def test_connections_that_were_ended_are_replaced(variant: Any, own: Any) -> None:
    client = variant.open(own)
    mine = client.take_listed("0", "a")
    for number in range(3):
        assert end_connections(own) >= 1
        mine = client.claim("0", "a", mine["etag"])
        assert mine, "a renewal over a broken connection was lost"
        assert end_connections(own) >= 1
        client.save("0", number)
    assert client.position("0") == 2
    client.release(mine)


def waiting(connection: Any) -> int:
    """How many statements of other connections have run for a tenth of a second.

    `innodb_trx` would name the lock, but shows an old answer to who asks ten times a second.
    """
    return int(
        connection.exec_driver_sql(
            "SELECT count(*) FROM information_schema.processlist "
            "WHERE command = 'Query' AND time_ms > 100 AND id <> CONNECTION_ID()"
        ).scalar()
    )


def running(connection: Any) -> int:
    """How many statements of other connections run, however new: for a server of one's own."""
    return int(
        connection.exec_driver_sql(
            "SELECT count(*) FROM information_schema.processlist "
            "WHERE command = 'Query' AND id <> CONNECTION_ID()"
        ).scalar()
    )


def test_a_request_that_waits_for_a_lock_is_given_up_and_ended(variant: Any, own: Any) -> None:
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


def test_a_replica_is_reported_and_a_new_connection_is_tried(
    variant: Any, own: Any, meek: str
) -> None:
    client = variant.open(meek)
    assert client.position("0") is None
    client.set(write_timeout=1.0)
    own.execute("SET GLOBAL read_only = 1")
    try:
        says(lambda: client.save("0", 1), StoreUnavailableError, "it is a replica")
    finally:
        own.execute("SET GLOBAL read_only = 0")
    client.set(write_timeout=LIMIT)
    client.save("0", 2)
    assert client.position("0") == 2


@pytest.mark.long
def test_a_silent_server_is_left_in_time_and_used_again(
    variant: Any, own_mysql: Mysql, own: Any, leaves_in_time: Any
) -> None:
    leaves_in_time(variant.open(own), own_mysql, 3.0)


def test_every_packet_of_a_login_has_what_is_left_of_the_time(
    mysql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 100.0
    limits: list[tuple[float, float]] = []
    read = pymysql.connections.Connection._read_bytes

    def watched(connection: Any, count: int) -> Any:
        nonlocal left
        data = read(connection, count)  # where old versions of the driver set the timeout
        if count == HEADER_BYTES:
            limits.append((connection._sock.gettimeout(), left))
            left -= 1.0
        return data

    monkeypatch.setattr(dialect, "bound", lambda: left)
    monkeypatch.setattr(pymysql.connections.Connection, "_read_bytes", watched)
    parts = make_url(mysql.url)
    connection = dialect.bounded_pymysql(pymysql)(host=parts.host, port=parts.port, user="root")
    connection.close()
    assert len(limits) >= 2  # a greeting and an answer to the login, at least
    assert [limit for limit, _ in limits] == [seconds for _, seconds in limits]


@pytest.mark.parametrize("variant", ["aio"], indirect=True)
def test_a_connection_of_a_cancelled_call_is_not_used_again(variant: Any, own: Any) -> None:
    client = variant.open(own)
    client.save("0", 1)

    async def cancel() -> None:
        call = asyncio.ensure_future(
            client.store.update_checkpoint(
                client.scope.as_dict() | {"partition_id": "0", "offset": "2", "sequence_number": 2}
            )
        )
        await asyncio.to_thread(eventually, waits)
        call.cancel()
        await asyncio.wait([call])

    with own.engine.begin() as blocking, own.engine.connect() as looking:

        def waits() -> bool:
            return waiting(looking) == 1

        blocking.exec_driver_sql(f"SELECT 1 FROM {own.tables.checkpoint} FOR UPDATE")
        variant.finished(cancel())
    for number in range(3, 6):
        client.save("0", number)
        assert client.position("0") == number


def test_batches_in_opposite_orders_have_one_winner_each(variant: Any, own: Any) -> None:
    stores = [variant.open(own) for _ in range(4)]
    ids = [str(number) for number in range(MANY)]
    etags: dict[str, str | None] = dict.fromkeys(ids)
    for _ in range(8):
        won: list[list[Any]] = [[] for _ in stores]

        def claim(number: int, won: Any = won, etags: Any = etags) -> None:
            batch = [stores[number].proposal(one, f"owner-{number}", etags[one]) for one in ids]
            won[number] = stores[number].claim_ownership(batch[:: 1 if number % 2 else -1])

        threads = [threading.Thread(target=claim, args=(n,)) for n in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(map(len, won)) == MANY
        etags = {row["partition_id"]: row["etag"] for rows in won for row in rows}
        assert len(etags) == MANY
    ((deadlocks,),) = own.execute(
        "SELECT variable_value FROM information_schema.global_status "
        "WHERE variable_name = 'INNODB_DEADLOCKS'"
    )
    assert int(deadlocks) == 0


def test_a_batch_is_one_statement_if_all_renewals_win(variant: Any, mysql: Any) -> None:
    engine = variant.engine(mysql)
    statements: list[str] = []

    @event.listens_for(getattr(engine, "sync_engine", engine), "before_cursor_execute")
    def note(_1: Any, _2: Any, statement: str, *_: Any) -> None:
        statements.append(statement.split()[0])

    client = variant.open(engine)
    won = client.claim_ownership([client.proposal(str(n), "a") for n in range(MANY)])
    assert len(client.claim_ownership([{**row, "owner_id": "a"} for row in won])) == MANY
    assert statements[-3:] == ["INSERT", "SELECT", "UPDATE"]
