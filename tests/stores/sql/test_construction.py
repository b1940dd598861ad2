"""What a SQL store can be made of, and what it says of what it cannot."""

import subprocess
import sys
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from eventhub_checkpoints import ConfigurationError, MissingDriverError, aio, open_store
from eventhub_checkpoints.errors import StoreAccessError, StoreError, StoreNotReadyError
from refusals import says
from waiting import LIMIT

WRONG = {
    "mssql://u:hush@host/db": "mssql:// is not supported; the SQL store takes sqlite://, "
    "postgresql://, mysql://, mariadb://; there is no store for SQL Server, but a custom store "
    "can be written for it: docs/how-to/custom-store.md",
    "mysql://u:hush@host": "names no database; expected mysql://USER:PASSWORD@HOST/DATABASE",
    "mysql://h/db?schema=x": "MySQL has no schemas; leave schema out",
    "mysql://h/db?sslca=x": "sslca in the store URL is not an option of the store or of (pymysql|"
    "aiomysql); expected one of ssl_ca, namespace, ",
    "mysql+mysqldb://h/db": r"cannot be used by the (a?sync) store; it takes mysql\+",
    "postgres://u:hush@host/db": "did you mean postgresql://USER:PASSWORD@HOST/DATABASE",
    "data/checkpoints.db": "did you mean sqlite:///data/checkpoints.db",
    "sqlite://checkpoints.db": "has no host; .* did you mean sqlite:///checkpoints.db",
    "valkey://:hush@host": "did you mean open_store with redis://HOST:6379/0",
    "sqlite://user:hush@/checkpoints.db": "a SQLite file has no user; expected sqlite:///FILE",
    "sqlite://": "must name a file",
    "sqlite:///:memory:": "must name a file",
    "sqlite:///file:x?mode=memory&uri=true": "must name a file",
    "postgresql://h:PORT/db": "is not a number from 1 to 65535; expected postg",
    "postgresql://u:p@h:hush/db": "not a number",
    "postgresql://u:p@a:hush/w@host/db": "not a number.*special characters percent-encoded",
    "postgresql://h:70000/db": "not a number from 1 to 65535",
    "postgresql://h/db?shema=x": "is not an option of the store or of psycopg"
    "; expected one of schema, namespace, ",
    "postgresql://h/db?sslmod=require": "expected one of sslmode, namespace, schema, ",
    "postgresql://h/db?pasword=hush": "pasword in the store URL is not.* expected one of "
    "password, ",
    "postgresql://u:p@a/w?hush=@host/db": "the query of the store URL cannot be read",
    "sqlite:///f.db?namespce=x": "of (pysqlite|aiosqlite); expected one of namespace, schema, ",
    "sqlite:///f.db?mode=ro": "mode in the store URL is not an option",
    "sqlite:///file:f.db?mod=ro&uri=true": "expected one of mode, ",
    "postgresql://u:p@hush/w@host/db": "special characters percent-encoded",
    "postgresql+psycopg2://h/db": r"cannot be used by the (a?sync) store",
    "sqlite:///f.db?namespace=a-b": "namespace is 'a-b'; expected letters",
    "sqlite:///f.db?schema=x": "SQLite has no schemas",
}
WAYS = r"store\.create\(\), or at the store's first use with create_tables=True or create = true "
WAYS += "in a configuration"


@pytest.mark.parametrize("url", WRONG)
def test_a_url_that_cannot_work_is_refused_in_one_sentence(variant: Any, url: str) -> None:
    with pytest.raises(ConfigurationError, match=WRONG[url]) as refused:
        variant.store(url)
    chain = [refused.value, refused.value.__cause__]
    assert "hush" not in repr(chain)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/db?namespace=n&schema=s&sslmode=require&target_session_attrs=read-write",
        "postgresql://h/db?host=a:1&host=b:2&options=-csearch_path%3Dx&application_name=me@here",
        "sqlite:///file:f.db?mode=ro&uri=true&timeout=5&namespace=n",
        "mysql://h/db?namespace=n&ssl=true&connect_timeout=5&program_name=me",
        "mariadb://h/db?ssl_ca=ca.pem&ssl_check_hostname=false&unix_socket=/run/mysqld.sock",
    ],
)
def test_options_of_the_driver_may_stand_in_the_url(variant: Any, url: str) -> None:
    variant.open(url)


def test_an_option_of_another_driver_is_refused_with_that_of_asyncpg() -> None:
    with pytest.raises(
        ConfigurationError, match="of asyncpg; expected one of ssl, namespace, schema, "
    ):
        aio.open_store("postgresql+asyncpg://h/db?sslmode=require")
    with pytest.raises(ConfigurationError, match="server_settings in the store URL is not"):
        aio.open_store("postgresql+asyncpg://h/db?server_settings=x")


def test_options_of_asyncpg_may_stand_in_the_url(loop: Any) -> None:
    url = "postgresql+asyncpg://h/db?ssl=require&prepared_statement_cache_size=0"
    loop.finished(aio.open_store(url).close())


def test_a_driver_of_the_other_variant_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="takes postgresql\\+psycopg://"):
        open_store("postgresql+asyncpg://h/db")
    with pytest.raises(ConfigurationError, match="takes sqlite\\+aiosqlite://"):
        aio.open_store("sqlite+pysqlite:///f.db")


def test_a_misspelt_setting_is_answered_with_those_of_this_store(variant: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected one of create_tables, ") as refused:
        variant.store("sqlite:///f.db", create_table=True)
    assert {"namespace", "schema", "entra", "write_timeout"} <= {*str(refused.value).split(", ")}


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "aiosqlite", None)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(MissingDriverError, match=r"eventhub-checkpoints\[postgres\]"):
        open_store("postgresql://h/db")
    with pytest.raises(MissingDriverError, match=r"eventhub-checkpoints\[mysql\]"):
        open_store("mysql://h/db")
    with pytest.raises(MissingDriverError, match=r"eventhub-checkpoints\[sql\]"):
        aio.open_store("sqlite:///f.db")


def test_names_in_the_url_and_by_argument_must_agree(variant: Any) -> None:
    variant.open("sqlite:///f.db?namespace=mine", namespace="mine")
    with pytest.raises(ConfigurationError, match="give it once"):
        variant.store("sqlite:///f.db?namespace=mine", namespace="yours")


def test_two_namespaces_keep_apart(variant: Any, place: Any) -> None:
    one = variant.open(place, namespace="one", create_tables=True)
    two = variant.open(place, namespace="Two", create_tables=True)
    one.save("0", 1)
    two.save("0", 2)
    assert (one.position("0"), two.position("0")) == (1, 2)


def test_a_password_is_never_shown(variant: Any) -> None:
    client = variant.open("postgresql://me:hush@127.0.0.1:1/db?sslpassword=hush", write_timeout=0.2)
    failed = says(lambda: client.save("0", 1), StoreError, "refused")
    shown = f"{client.store!r} {failed} {failed.__cause__!r} {failed.__cause__}"
    assert "hush" not in shown
    assert "me:***@127.0.0.1:1/db" in shown


@pytest.mark.parametrize("settings", [{"credential": "hush"}, {"entra": True}])
def test_a_credential_that_nobody_asks_for_is_refused(variant: Any, settings: Any) -> None:
    with pytest.raises(ConfigurationError, match="takes no credential"):
        variant.store("sqlite:///f.db", **settings)


def test_an_engine_of_the_other_variant_is_refused(variant: Any, sqlite: Any) -> None:
    other = create_engine("sqlite:///f.db") if variant.name == "aio" else object()
    with pytest.raises(ConfigurationError, match="expected a URL, or an"):
        variant.store(other)


def test_a_ready_engine_is_used_and_not_closed(variant: Any, place: Any) -> None:
    engine = variant.engine(place)
    pool = getattr(engine, "sync_engine", engine).pool
    client = variant.open(engine, schema=place.tables.schema)
    client.save("0", 1)
    client.call("close")
    assert pool.checkedin() == 1  # its connection is still there
    assert variant.open(engine, schema=place.tables.schema).position("0") == 1


def test_an_engine_that_begins_transactions_itself_can_be_used(variant: Any, sqlite: Any) -> None:
    engine = variant.engine(sqlite)

    @event.listens_for(getattr(engine, "sync_engine", engine), "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    sqlite.vanish()
    client = variant.open(engine, create_tables=True)
    mine = client.take("0", "a")
    client.save("0", 1)
    assert client.claim("0", "a", mine["etag"])
    assert client.position("0") == 1


def test_tables_that_are_missing_are_named_with_what_creates_them(variant: Any, place: Any) -> None:
    client = variant.open(place, namespace="absent")
    for call in (client.list_ownership, client.list_checkpoints, lambda: client.take("0", "a")):
        with pytest.raises(StoreNotReadyError, match=rf"absent_\*.*: create it with {WAYS}"):
            call()


def test_tables_of_a_store_that_was_never_used_are_not_there_yet(variant: Any, place: Any) -> None:
    """What creates them at once is named: `create_tables=True` alone has done nothing."""
    variant.open(place, namespace="unused", create_tables=True)
    client = variant.open(place, namespace="unused")
    with pytest.raises(StoreNotReadyError, match=rf"unused_\*.*: create it with {WAYS}"):
        client.list_checkpoints()


def test_tables_that_vanish_are_missed_and_created_on_request(variant: Any, place: Any) -> None:
    client = variant.open(place)
    client.save("0", 1)
    place.vanish()
    with pytest.raises(StoreNotReadyError, match="create_tables"):
        client.save("0", 2)
    client.call("create")
    client.save("0", 2)
    assert client.position("0") == 2


def test_a_folder_that_is_missing_is_said(variant: Any, tmp_path: Any) -> None:
    with pytest.raises(StoreNotReadyError, match="does its folder exist"):
        variant.open(f"sqlite:///{tmp_path}/none/f.db").list_ownership()


def test_a_file_that_is_missing_is_said_and_not_made(variant: Any, tmp_path: Any) -> None:
    with pytest.raises(StoreNotReadyError, match=f"the file does not exist: .* {WAYS}$"):
        variant.open(f"sqlite:///{tmp_path}/misspelt.db").list_ownership()
    assert [*tmp_path.iterdir()] == []
    variant.open(f"sqlite:///{tmp_path}/new.db", create_tables=True).list_ownership()
    variant.open(f"sqlite:///{tmp_path}/new.db").list_ownership()


def test_a_file_that_is_no_database_is_left_as_it_is(variant: Any, tmp_path: Any) -> None:
    (tmp_path / "f.db").write_text("minutes of the meeting\n" * 100)
    with pytest.raises(StoreError, match="not an SQLite database"):
        variant.open(f"sqlite:///{tmp_path}/f.db", create_tables=True).list_ownership()
    assert (tmp_path / "f.db").read_text() == "minutes of the meeting\n" * 100


def test_a_database_that_is_missing_is_said(variant: Any, own_server: Any) -> None:
    with pytest.raises(StoreNotReadyError, match="the database does not exist"):
        variant.open(own_server.url.replace("/postgres", "/none")).list_ownership()


def test_a_role_that_is_unknown_is_refused_at_once(variant: Any, own_server: Any) -> None:
    with pytest.raises(StoreAccessError, match="refused the login"):
        variant.open(own_server.url.replace("//test@", "//nobody_here@")).list_ownership()


@pytest.mark.waits
def test_importing_one_variant_needs_no_driver_of_a_database() -> None:
    code = (
        "import sys, eventhub_checkpoints.sql\n"
        "drivers = {'psycopg', 'asyncpg', 'aiosqlite', 'pymysql', 'aiomysql'}\n"
        "assert not drivers & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)


@pytest.mark.parametrize("url", ["sqlite:///x.db\n", " sqlite:///x.db", "postgresql://h/db\r\n"])
def test_a_url_with_white_space_at_its_ends_is_refused(variant: Any, url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"white space.*: strip it"):
        variant.store(url)


@pytest.mark.parametrize("settings", [{"credential": "other"}, {"entra": True}])
def test_a_second_password_is_refused(variant: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="the URL has a password, and") as refused:
        variant.store("postgresql://app:hush@h/db", **settings)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "option", ["sslmode=yes", "connect_timeout=soon", "target_session_attrs=any-one"]
)
def test_an_option_with_a_wrong_value_is_a_mistake_and_not_tried_again(
    variant: Any, option: str
) -> None:
    client = variant.open(f"postgresql://127.0.0.1:1/db?{option}", operation_timeout=LIMIT)
    with pytest.raises(ConfigurationError, match=f"option .*{option.partition('=')[2]}"):
        client.list_ownership()
