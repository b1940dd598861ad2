"""What is said to SQL databases, and what their errors mean."""

from collections.abc import Iterator, Mapping

import pytest
from sqlalchemy import TextClause

from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.sql.mysql import tls_context
from eventhub_checkpoints.stores.sql.statements import (
    Statements,
    columns,
    listing,
    readable_checkpoint,
    row_values,
)
from eventhub_checkpoints.stores.sql.tables import MIGRATIONS, Tables
from eventhub_checkpoints.stores.sql.url import DIALECTS
from stores_in_turn import DATABASES

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def test_tables_are_quoted_and_have_a_schema_where_one_is_given() -> None:
    assert Tables("mine").ownership == '"mine_ownership"'
    assert Tables("Mine", "there").checkpoint == '"there"."Mine_checkpoint"'


def test_names_are_stored_in_lower_case_and_partitions_as_they_are() -> None:
    scope = Scope("NS.example.net", "Orders", "$Default")
    assert list(row_values(scope, "A").values()) == ["ns.example.net", "orders", "$default", "A"]


def test_a_batch_is_one_array_for_each_column() -> None:
    assert columns([{"a": "1", "b": None}, {"a": "2", "b": "3"}]) == {
        "a": ["1", "2"],
        "b": [None, "3"],
    }


def flat(statement: object) -> Iterator[TextClause]:
    if isinstance(statement, TextClause):
        yield statement
    elif isinstance(statement, list | tuple):
        for each in statement:
            yield from flat(each)
    elif isinstance(statement, Mapping):
        yield from flat(list(statement.values()))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_names_only_parameters_that_are_passed(dialect: str) -> None:
    known = {
        *row_values(Scope("a", "b", "c"), "0"),
        *("partition_ids", "owner_id", "etag", "new_etag", "rows"),
        *("offset", "sequence_number", "version", "seen", "expected", "writer"),
        *("partition_key", "replaced_key", "kept", "limit"),
    }
    made = Statements(Tables("mine"), DIALECTS[dialect])
    for name, statement in vars(made).items():
        for each in flat(statement):
            assert set(each.compile().params) <= known, name


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_the_second_migration_is_what_it_always_was(dialect: str) -> None:
    table, index = MIGRATIONS[1](Tables("t"), DIALECTS[dialect])
    text, time = ("text", "double precision") if dialect == "postgresql" else ("TEXT", "REAL")
    key = "fully_qualified_namespace, eventhub_name, consumer_group, partition_id"
    names = key.replace(",", f" {text} NOT NULL,") + f" {text} NOT NULL"
    assert table == (
        f'CREATE TABLE IF NOT EXISTS "t_history" (entry text PRIMARY KEY, {names}, '
        f'time {time} NOT NULL, kind {text} NOT NULL, "offset" {text}, sequence_number '
        f"BIGINT, version {text} NOT NULL, last_modified_time {time} NOT NULL, "
        f"writer {text} NOT NULL)"
    )
    assert index == f'CREATE INDEX IF NOT EXISTS "t_history_key" ON "t_history" ({key}, time)'


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_the_first_migration_is_what_it_always_was(dialect: str) -> None:
    own, held = MIGRATIONS[0](Tables("t"), DIALECTS[dialect])
    text, time = ("text", "double precision") if dialect == "postgresql" else ("TEXT", "REAL")
    key = "fully_qualified_namespace, eventhub_name, consumer_group, partition_id"
    names = key.replace(",", f" {text} NOT NULL,") + f" {text} NOT NULL"
    assert own == (
        f'CREATE TABLE IF NOT EXISTS "t_ownership" ({names}, owner_id {text} NOT NULL, '
        f"etag {text} NOT NULL, last_modified_time {time} NOT NULL, PRIMARY KEY ({key}))"
    )
    assert held == (
        f'CREATE TABLE IF NOT EXISTS "t_checkpoint" ({names}, "offset" {text}, sequence_number '
        f"BIGINT, version {text} NOT NULL, last_modified_time {time} NOT NULL, "
        f"writer {text} NOT NULL, PRIMARY KEY ({key}))"
    )


class DriverError(Exception):
    """An error of a driver, with its code."""

    def __init__(self, message: str, **codes: object) -> None:
        super().__init__(message)
        vars(self).update(codes)


def mapped(dialect: str, message: str, **codes: object) -> CheckpointStoreError:
    cause = DriverError(message, **codes)
    return DIALECTS[dialect].error(cause, cause, "here")


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("40001", StoreUnavailableError),
        ("40P01", StoreUnavailableError),
        ("57P01", StoreUnavailableError),
        ("57P03", StoreUnavailableError),
        ("57014", StoreUnavailableError),
        ("08006", StoreUnavailableError),
        ("53300", StoreUnavailableError),
        ("25006", StoreUnavailableError),
        ("28P01", StoreAccessError),
        ("42501", StoreAccessError),
        ("42P01", StoreNotReadyError),
        ("3F000", StoreNotReadyError),
        ("3D000", StoreNotReadyError),
        ("42703", StoreNotReadyError),
        ("53100", StoreError),
        ("23505", StoreError),
        (None, StoreUnavailableError),
    ],
)
def test_a_sqlstate_is_the_error_that_it_calls_for(sqlstate: str | None, kind: type) -> None:
    error = mapped("postgresql", "said\nmore", sqlstate=sqlstate)
    assert type(error) is kind
    assert str(error).startswith("here: ")
    assert "more" not in str(error)


def test_a_refusal_at_connect_is_known_by_its_words() -> None:
    said = 'connection failed: FATAL:  password authentication failed for user "me"'
    assert type(mapped("postgresql", said)) is StoreAccessError
    said = 'connection failed: FATAL:  database "x" does not exist'
    assert type(mapped("postgresql", said)) is StoreNotReadyError


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("SQLITE_BUSY", "database is locked", StoreUnavailableError),
        ("SQLITE_BUSY_SNAPSHOT", "database is locked", StoreUnavailableError),
        ("SQLITE_FULL", "database or disk is full", StoreError),
        ("SQLITE_IOERR_WRITE", "disk I/O error", StoreError),
        ("SQLITE_READONLY_DIRECTORY", "attempt to write", StoreAccessError),
        ("SQLITE_CANTOPEN", "unable to open database file", StoreNotReadyError),
        ("SQLITE_NOTADB", "file is not a database", StoreError),
        ("SQLITE_ERROR", "no such table: x", StoreNotReadyError),
        ("SQLITE_ERROR", "no such column: x", StoreNotReadyError),
        ("SQLITE_ERROR", "syntax error", StoreError),
        (None, "anything", StoreError),
    ],
)
def test_a_result_code_is_the_error_that_it_calls_for(name, said: str, kind: type) -> None:
    assert type(mapped("sqlite", said, sqlite_errorname=name)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1045, StoreAccessError),
        (1142, StoreAccessError),
        (2026, StoreAccessError),
        (1049, StoreNotReadyError),
        (1146, StoreNotReadyError),
        (1054, StoreNotReadyError),
        (1205, StoreUnavailableError),
        (1213, StoreUnavailableError),
        (1290, StoreUnavailableError),
        (1792, StoreUnavailableError),
        (1040, StoreUnavailableError),
        (2006, StoreUnavailableError),
        (2013, StoreUnavailableError),
        ("Packet sequence number wrong", StoreUnavailableError),
        (1114, StoreError),
        (1406, StoreError),
        (1064, StoreError),
    ],
)
def test_a_code_of_mysql_is_the_error_that_it_calls_for(code: object, kind: type) -> None:
    cause = Exception(code, "message\nmore")
    error = DIALECTS["mysql"].error(cause, cause, "here")
    assert type(error) is kind
    assert str(error).startswith("here: ")
    assert "more" not in str(error)


def test_what_exists_and_what_takes_no_writes_is_known_by_its_code() -> None:
    mysql = DIALECTS["mariadb"]
    assert mysql.is_duplicate(Exception(1062, "Duplicate entry"))
    assert not mysql.is_duplicate(Exception(1213, "Deadlock found"))
    assert mysql.must_reconnect(Exception(1290, "--read-only"))


def test_an_unknown_choice_of_encryption_is_refused() -> None:
    assert tls_context({}) is None
    assert tls_context({"ssl": "true"}).check_hostname
    assert not tls_context({"ssl": {"check_hostname": False}}).check_hostname
    with pytest.raises(ConfigurationError, match="ssl of the store URL must be true or false"):
        tls_context({"ssl": "yes"})
    with pytest.raises(ConfigurationError, match="a file of ssl_ca"):
        tls_context({"ssl": {"ca": "/nowhere/ca.pem"}})


@pytest.mark.parametrize("partition_id", [b"0", 0, None])
def test_a_row_whose_partition_is_not_a_string_is_left_out(partition_id: object) -> None:
    row = (partition_id, "4711", 7, "version", 5.5, 6.5)
    rows = listing([row, ("1", *row[1:])], SCOPE, readable_checkpoint)
    assert [each.partition_id for each in rows.rows] == ["1"]
    assert len(rows.skipped) == 1


def test_each_dialect_has_a_database_on_which_all_tests_run() -> None:
    assert {DIALECTS[scheme] for scheme in DATABASES.values()} == {*DIALECTS.values()}
