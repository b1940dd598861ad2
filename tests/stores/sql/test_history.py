"""Earlier checkpoints: which are kept, at what cost, and what happens where they cannot be."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, text

from eventhub_checkpoints import StoreNotReadyError
from eventhub_checkpoints.abilities import KeepsHistory as SyncKeepsHistory
from eventhub_checkpoints.aio.abilities import KeepsHistory
from eventhub_checkpoints.records import Checkpoint
from eventhub_checkpoints.stores.hook_results import FORCE
from eventhub_checkpoints.stores.sql.statements import checkpoint_columns


def history(client: Any, **settings: Any) -> list[dict[str, Any]]:
    return list(client.call("list_history", *client.scope, **settings))


def entries(client: Any, **settings: Any) -> list[tuple[str, Any]]:
    """Kinds and numbers, oldest first."""
    rows = history(client, **settings)
    return [(row["kind"], row["sequence_number"]) for row in reversed(rows)]


def age(place: Any, seconds: float = 120.0) -> None:
    """Make all entries older than they are, with the key that they would have."""
    place.execute(
        f"UPDATE {place.tables.history} SET time = time - {seconds}, "
        f"entry = replace(entry, '-', '-{seconds:g}-')"
    )


def fill(place: Any, count: int) -> None:
    """Add so many old entries of partition 0, which has one."""
    names = f"kind, {checkpoint_columns(place.tables)}"
    copy = text(
        f"INSERT INTO {place.tables.history} (entry, time, {names}) "
        f"SELECT :entry, :time, {names} FROM {place.tables.history} "
        "WHERE partition_id = '0' AND entry NOT LIKE 'old%'"
    )
    rows = [{"entry": f"old {number}", "time": 1000.0 + number} for number in range(count)]
    with place.engine.begin() as connection:
        connection.execute(copy, rows)


def stored(place: Any) -> int:
    ((count,),) = place.execute(f"SELECT count(*) FROM {place.tables.history}")
    return int(count)


@pytest.fixture
def old_tables(place: Any) -> Any:
    """Tables as the first release created them."""
    return outdated(place)


def outdated(place: Any) -> Any:
    place.execute(f"DROP TABLE {place.tables.history}")
    place.execute(f"DELETE FROM {place.tables.version} WHERE version > 1")
    return place


def test_the_first_checkpoint_has_an_entry_and_those_of_the_same_minute_have_none(
    variant: Any, place: Any
) -> None:
    client, rival = variant.open(place), variant.open(place)
    for number in range(5):
        client.save("0", number)
    rival.list_checkpoints()
    rival.save("0", 7)
    assert entries(client) == [("checkpoint", 0)]


def test_an_entry_holds_the_checkpoint_its_time_and_its_writer(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 4)
    [entry] = history(client)
    assert {**client.saved("0"), **entry} == entry
    assert entry["writer"] == client.store.writer
    (modified,) = place.execute(f"SELECT last_modified_time FROM {place.tables.checkpoint}")[0]
    assert abs(entry["last_modified_time"] - modified) < 60


def test_a_checkpoint_after_a_minute_has_an_entry(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 1)
    age(place)
    client.save("0", 2)
    assert entries(client) == [("checkpoint", 1)], "this process has written one a moment ago"
    variant.open(place).save("0", 3)
    assert entries(client) == [("checkpoint", 1), ("checkpoint", 3)]


@pytest.mark.parametrize("kind", ["create", "update", "forward"])
def test_every_kind_of_write_has_an_entry(variant: Any, place: Any, kind: str) -> None:
    client = variant.open(place)
    if kind != "create":
        variant.open(place).save("0", 1)
        age(place)
    if kind != "forward":
        client.list_checkpoints()
    client.save("0", 2)
    assert entries(client)[-1] == ("checkpoint", 2)


def test_a_rewind_keeps_the_row_it_replaces_and_the_one_it_stores(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 1)
    client.save("0", 9)
    client.save("0", 3, force=True)
    client.save("0", 5, force=True)
    client.save("1", 0, force=True)
    assert entries(client, partition_id="0") == [
        ("checkpoint", 1),
        ("replaced", 9),
        ("rewind", 3),
        ("replaced", 3),
        ("rewind", 5),
    ]
    assert entries(client, partition_id="1") == [("rewind", 0)]


def test_rewinds_of_the_same_millisecond_keep_their_order(variant: Any, sqlite: Any) -> None:
    client = variant.open(sqlite)
    for partition_id, number in (("0", 9), ("2", 3), ("1", 4), ("0", 5)):
        client.save(partition_id, number, force=True)
    sqlite.execute(f"UPDATE {sqlite.tables.history} SET time = 1000.0")
    assert entries(client, partition_id="0") == [("rewind", 9), ("replaced", 9), ("rewind", 5)]
    newest = [(row["partition_id"], row["sequence_number"]) for row in history(client)]
    assert newest == [("0", 5), ("0", 9), ("1", 4), ("2", 3), ("0", 9)]


def test_a_rewind_that_is_repeated_has_no_second_entry(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 9)
    row = Checkpoint(client.scope, "0", offset="3", sequence_number=3, version="3" * 32)
    for _ in range(3):
        client.call("write_checkpoint", row, FORCE)
    assert entries(client) == [("checkpoint", 9), ("replaced", 9), ("rewind", 3)]


def test_a_marked_write_is_kept_like_a_rewind_and_only_once(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 9)
    client.list_checkpoints()
    client.store.keep_next_write(client.scope, "0")
    client.save("0", 3)
    client.save("0", 4)
    client.store.keep_next_write(client.scope, "1")
    client.save("1", 0)
    assert entries(client, partition_id="0") == [
        ("checkpoint", 9),
        ("replaced", 9),
        ("rewind", 3),
    ]
    assert entries(client, partition_id="1") == [("rewind", 0)]


def test_a_marked_write_that_loses_leaves_no_entry(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 5)
    variant.open(place).save("0", 7, force=True)
    before = entries(client)
    client.store.keep_next_write(client.scope, "0")
    client.save("0", 6, on_stale="log")
    assert entries(client) == before
    assert client.position("0") == 7


def test_a_checkpoint_that_is_refused_has_no_entry(variant: Any, place: Any) -> None:
    variant.open(place).save("0", 9)
    age(place)
    variant.open(place).save("0", 1, on_stale="log")
    assert entries(variant.open(place)) == [("checkpoint", 9)]


def test_entries_of_a_group_or_a_partition_are_listed_newest_first(
    variant: Any, place: Any
) -> None:
    client = variant.open(place)
    for partition_id in ("0", "1", "0"):
        variant.open(place).save(partition_id, 5, force=True)
    assert [row["partition_id"] for row in history(client)] == ["0", "0", "1", "0"]
    assert [row["kind"] for row in history(client, limit=2)] == ["rewind", "replaced"]
    assert len(history(client, partition_id="1")) == 1
    assert history(client, partition_id="2") == []


def test_writers_at_the_same_time_have_one_entry_a_minute(variant: Any, place: Any) -> None:
    # Of more, one might lose so often that its write is refused.
    clients = [variant.open(place) for _ in range(4)]
    for client in clients:
        client.list_ownership()
    start = threading.Barrier(len(clients))

    def write(number: int) -> None:
        start.wait()
        clients[number].save("0", number, on_stale="log")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The minute may end in between.
    assert len(history(clients[0])) in (1, 2)
    assert clients[0].position("0") == len(clients) - 1


def test_a_full_history_is_pruned_and_keeps_the_newest(variant: Any, place: Any) -> None:
    variant.open(place).save("0", 1)
    variant.open(place).save("1", 1)
    fill(place, 1000)
    client = variant.open(place)
    client.save("0", 2, force=True)
    assert len(history(client, partition_id="0", limit=5000)) == 900
    assert entries(client, partition_id="0")[-3:] == [
        ("checkpoint", 1),
        ("replaced", 1),
        ("rewind", 2),
    ]
    assert entries(client, partition_id="1") == [("checkpoint", 1)]


def test_deleting_a_partition_or_a_group_deletes_its_entries(variant: Any, place: Any) -> None:
    client = variant.open(place)
    for partition_id in ("0", "1", "2"):
        client.save(partition_id, 1)
    assert client.call("delete_partition", *client.scope, "1") == 1
    assert {row["partition_id"] for row in history(client)} == {"0", "2"}
    assert client.call("delete_scope", *client.scope) == 2
    assert stored(place) == 0
    client.save("0", 1)
    assert entries(client) == [("checkpoint", 1)]


def test_the_row_of_verify_has_no_entry(variant: Any, place: Any) -> None:
    variant.open(place).call("verify")
    assert stored(place) == 0


def test_no_history_is_kept_where_that_is_switched_off(variant: Any, place: Any) -> None:
    variant.open(place).save("0", 1)
    age(place)
    client = variant.open(place, keep_history=False)
    client.save("0", 2)
    client.save("0", 1, force=True)
    assert entries(client) == [("checkpoint", 1)]


def test_a_write_in_a_transaction_of_the_caller_has_no_entry(variant: Any, place: Any) -> None:
    engine = variant.engine(place)
    client = variant.open(engine, schema=place.tables.schema)
    row = Checkpoint(client.scope, "0", offset="3", sequence_number=3)
    if variant.name == "sync":
        with engine.begin() as connection:
            client.store.write_in(connection, row)
    else:

        async def write() -> None:
            async with engine.begin() as connection:
                await client.store.write_in(connection, row)

        variant.finished(write())
    assert client.position("0") == 3
    assert entries(client) == []


def test_an_engine_of_the_caller_keeps_a_history(variant: Any, place: Any) -> None:
    client = variant.open(variant.engine(place), schema=place.tables.schema)
    client.save("0", 1)
    client.save("0", 0, force=True)
    assert entries(client) == [("checkpoint", 1), ("replaced", 1), ("rewind", 0)]


@pytest.mark.parametrize("variant", ["aio"], indirect=True)
def test_asyncpg_keeps_the_same_history(variant: Any, postgres: Any) -> None:
    client = variant.open(postgres.url.replace("postgresql", "postgresql+asyncpg", 1))
    client.save("0", 1)
    client.list_checkpoints()
    client.save("0", 3)
    client.save("0", 0, force=True)
    client.store.keep_next_write(client.scope, "0")
    client.save("0", 2)
    assert entries(client, partition_id="0") == [
        ("checkpoint", 1),
        ("replaced", 3),
        ("rewind", 0),
        ("replaced", 0),
        ("rewind", 2),
    ]


def test_old_tables_are_written_without_a_history(variant: Any, old_tables: Any) -> None:
    client = variant.open(old_tables)
    client.save("0", 1)
    client.save("0", 2)
    client.save("0", 0, force=True)
    assert client.position("0") == 0
    assert client.call("delete_scope", *client.scope) == 1
    with pytest.raises(StoreNotReadyError, match=r"store\.create\(\)"):
        history(client)


def test_creating_upgrades_old_tables_under_an_old_release(variant: Any, old_tables: Any) -> None:
    old = variant.open(old_tables, keep_history=False)
    old.save("0", 1)
    client = variant.open(old_tables, create_tables=True)
    client.list_checkpoints()
    old.save("0", 2)
    client.save("0", 3)
    assert entries(client) == [("checkpoint", 3)]
    old.save("0", 4)
    assert client.position("0") == 4


def test_a_table_of_that_name_with_other_columns_is_left_alone(variant: Any, place: Any) -> None:
    place.execute(f"DROP TABLE {place.tables.history}")
    place.execute(f"CREATE TABLE {place.tables.history} (mine INTEGER)")
    client = variant.open(place)
    client.save("0", 1)
    client.save("0", 0, force=True)
    assert client.position("0") == 0
    assert stored(place) == 0


@pytest.fixture
def reader(own: Any) -> Any:
    """Create a role with the rights to the two tables of rows; return its URL."""

    def create() -> str:
        own.execute("CREATE ROLE reader LOGIN")
        own.execute(f'GRANT USAGE ON SCHEMA "{own.tables.schema}" TO reader')
        for table in (own.tables.ownership, own.tables.checkpoint):
            own.execute(f"GRANT SELECT, INSERT, UPDATE ON {table} TO reader")
        return str(own.url).replace("//test@", "//reader@")

    yield create
    own.execute("DROP OWNED BY reader")
    own.execute("DROP ROLE reader")


@pytest.mark.parametrize("right", ["SELECT", "INSERT"])
def test_a_role_without_a_right_to_the_history_writes_without_it(
    variant: Any, own: Any, reader: Callable[[], str], right: str
) -> None:
    url = reader()
    others = {"SELECT", "INSERT"} - {right}
    own.execute(f"GRANT {', '.join(others)} ON {own.tables.history} TO reader")
    client = variant.open(url)
    client.save("0", 1)
    client.save("0", 0, force=True)
    assert client.position("0") == 0
    assert stored(own) == 0


def test_a_role_that_may_not_prune_stops_at_a_full_history(
    variant: Any, own: Any, reader: Callable[[], str]
) -> None:
    variant.open(own).save("0", 1)
    fill(own, 989)
    url = reader()
    own.execute(f"GRANT SELECT, INSERT ON {own.tables.history} TO reader")
    client = variant.open(url)
    for number in range(5):
        client.save("0", number, force=True)
    assert client.position("0") == 4
    assert stored(own) == 992


def test_a_role_that_may_not_migrate_goes_on_with_old_tables(
    variant: Any, own: Any, reader: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    url = reader()
    own.execute(f"GRANT SELECT ON {own.tables.version} TO reader")
    outdated(own)
    client = variant.open(url, create_tables=True)
    client.save("0", 1)
    assert client.position("0") == 1
    assert "the tables were not migrated" in caplog.text


def test_the_rewound_row_is_the_one_that_was_there(variant: Any, place: Any) -> None:
    """Rewinds at the same time wait for each other, and each keeps what it really replaced."""
    clients = [variant.open(place) for _ in range(6)]
    clients[0].save("0", 100)
    start = threading.Barrier(len(clients))

    def rewind(number: int) -> None:
        start.wait()
        clients[number].save("0", number, force=True)

    threads = [threading.Thread(target=rewind, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = entries(clients[0])
    replaced = sorted(number for kind, number in found if kind == "replaced")
    stored_last = clients[0].position("0")
    assert replaced == sorted({100, *range(len(clients))} - {stored_last})
    assert sorted(number for kind, number in found if kind == "rewind") == [*range(len(clients))]


def test_both_are_written_in_one_savepoint_of_sqlite(variant: Any, sqlite: Any) -> None:
    engine = variant.engine(sqlite)
    said: list[str] = []

    @event.listens_for(getattr(engine, "sync_engine", engine), "before_cursor_execute")
    def note(_1: Any, _2: Any, statement: str, *_: Any) -> None:
        said.append(statement.split()[0])

    client = variant.open(engine)
    client.save("0", 1)
    assert said[-5:] == ["SAVEPOINT", "INSERT", "INSERT", "SELECT", "RELEASE"]
    client.save("0", 2)
    assert said[-2:] == ["RELEASE", "UPDATE"]


def test_sql_stores_declare_the_ability(variant: Any, sqlite: Any) -> None:
    client = variant.open(sqlite)
    ability = SyncKeepsHistory if variant.name == "sync" else KeepsHistory
    assert isinstance(client.store, ability)
