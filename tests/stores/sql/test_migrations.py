"""How tables come to be, and change under those who use them."""

import subprocess
import sys
import threading
from typing import Any

import pytest

from eventhub_checkpoints.stores.sql import tables as migrations
from eventhub_checkpoints.stores.sql.dialect import Dialect
from eventhub_checkpoints.stores.sql.tables import Tables
from eventhub_checkpoints.stores.sql.url import DIALECTS
from waiting import LIMIT


@pytest.fixture
def empty(place: Any) -> Any:
    """The place before anybody created something."""
    place.vanish()
    return place


def versions(place: Any) -> list[int]:
    rows = place.execute(f"SELECT version FROM {place.tables.version} ORDER BY version")
    return [row[0] for row in rows]


def test_creating_twice_changes_nothing(variant: Any, empty: Any) -> None:
    client = variant.open(empty, create_tables=True)
    client.save("0", 1)
    client.call("create")
    assert versions(empty) == [1, 2]
    assert client.position("0") == 1


def test_a_schema_is_created_with_the_tables(variant: Any, postgres: Any) -> None:
    postgres.drop()
    variant.open(postgres, create_tables=True).save("0", 1)
    assert versions(postgres) == [1, 2]


def test_sixteen_who_create_at_once_all_succeed(variant: Any, empty: Any) -> None:
    clients = [variant.open(empty, create_tables=True) for _ in range(16)]
    errors: list[Exception] = []

    def begin(client: Any) -> None:
        try:
            client.save(str(clients.index(client)), 1)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert versions(empty) == [1, 2]


PROGRAM = """
import sys
from eventhub_checkpoints import open_store
sys.stdin.readline()
with open_store(sys.argv[1], create_tables=True) as store:
    store.list_ownership("ns.example.net", "orders", "$Default")
"""


def test_processes_that_create_a_file_at_once_all_succeed(sqlite: Any) -> None:
    sqlite.vanish()
    command = [sys.executable, "-c", PROGRAM, sqlite.url]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=LIMIT)
    assert [process.returncode for process in running] == [0] * 4
    assert versions(sqlite) == [1, 2]


def more(tables: Tables, dialect: Dialect) -> list[str]:
    return [f"ALTER TABLE {tables.checkpoint} ADD COLUMN note TEXT"]


def test_a_newer_release_changes_tables_under_an_older_one(
    variant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = variant.open(place, create_tables=True)
    mine = old.take_listed("0", "a")
    old.save("0", 1)
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, more))
        variant.open(place, create_tables=True).list_ownership()
    assert versions(place) == [1, 2, 3]
    old.save("0", 2)
    assert old.claim("0", "a", mine["etag"])
    old.call("create")  # an older release meets tables that are newer than it knows
    variant.open(place, create_tables=True).save("0", 3)
    assert versions(place) == [1, 2, 3]
    assert place.execute(f"SELECT note FROM {place.tables.checkpoint}") == [(None,)]


def test_a_migration_that_fails_leaves_no_trace(
    variant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(tables: Tables, dialect: Dialect) -> list[str]:
        return [*more(tables, dialect), "SELECT 1 FROM nowhere"]

    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, broken))
        with pytest.raises(Exception, match="nowhere"):
            variant.open(place, create_tables=True).list_ownership()
    assert versions(place) == [1, 2]
    variant.open(place, create_tables=True).save("0", 1)


def test_a_step_that_was_carried_out_in_part_is_repeated_on_mysql(
    variant: Any, mysql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in more(mysql.tables, DIALECTS["mysql"]):
        mysql.execute(statement)  # MySQL commits each statement, and then the process ended
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, more))
        variant.open(mysql, create_tables=True).save("0", 1)
    assert versions(mysql) == [1, 2, 3]
