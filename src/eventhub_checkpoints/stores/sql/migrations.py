"""Migrations of the tables: an append-only list of steps.

A step only adds: a table, or a column that may be omitted. Programs of an older release continue
while a newer one migrates their tables, so nothing that they use is ever removed.
"""

import hashlib
from collections.abc import Callable, Sequence

from eventhub_checkpoints.stores.sql.statements import CLOCKS, KEY, NAMES
from eventhub_checkpoints.stores.sql.tables import Statement, Tables, spelled

Step = Callable[[Tables, str], Sequence[str]]
"""Returns the statements of one migration, for tables of these names and a dialect."""

TYPES = {
    "postgresql": {"text": "text", "time": "double precision"},
    "sqlite": {"text": "TEXT", "time": "REAL"},
}


def first_tables(tables: Tables, dialect: str) -> Sequence[str]:
    """Return the statements that create the two tables of rows."""
    text, time = TYPES[dialect]["text"], TYPES[dialect]["time"]
    key = ", ".join(f"{name} {text} NOT NULL" for name in (*NAMES, "partition_id"))
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.ownership} ({key}, owner_id {text} NOT NULL, "
        f"etag {text} NOT NULL, last_modified_time {time} NOT NULL, PRIMARY KEY ({KEY}))",
        f'CREATE TABLE IF NOT EXISTS {tables.checkpoint} ({key}, "offset" {text}, '
        f"sequence_number BIGINT, version {text} NOT NULL, last_modified_time {time} NOT NULL, "
        f"writer {text} NOT NULL, PRIMARY KEY ({KEY}))",
    )


MIGRATIONS: tuple[Step, ...] = (first_tables,)
"""In the order of their numbers, which begin at 1. Never edit one; append."""


def preparations(tables: Tables, dialect: str) -> Sequence[str]:
    """Return the statements that create the table of versions, under a lock on PostgreSQL.

    The lock excludes all other migrations; on SQLite, the transaction does.
    """
    first = []
    if dialect == "postgresql":
        digest = hashlib.sha256(tables.version.encode()).digest()
        first = [f"SELECT pg_advisory_xact_lock({int.from_bytes(digest[:8], signed=True)})"]
        if tables.schema:
            # IF NOT EXISTS requires the permission to create schemas even if the schema exists.
            first.append(
                f"DO $$ BEGIN IF to_regnamespace('\"{tables.schema}\"') IS NULL "
                f'THEN CREATE SCHEMA "{tables.schema}"; END IF; END $$'
            )
    time = TYPES[dialect]["time"]
    return (
        *first,
        f"CREATE TABLE IF NOT EXISTS {tables.version} (version INTEGER PRIMARY KEY, "
        f"applied_time {time} NOT NULL, writer {TYPES[dialect]['text']} NOT NULL)",
    )


def has_versions(tables: Tables, dialect: str) -> str:
    """Return a query that yields a row if the table of versions exists."""
    if dialect == "sqlite":
        name = tables.version.strip('"')
        return f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('{name}')"
    return f"SELECT 1 WHERE to_regclass('{tables.version}') IS NOT NULL"


def newest_version(tables: Tables) -> str:
    """Return a query for the number of the last applied migration."""
    return f"SELECT max(version) FROM {tables.version}"


def applied(tables: Tables, dialect: str, driver: str) -> Statement:
    """Return the statement that records an applied migration."""
    return spelled(
        f"INSERT INTO {tables.version} (version, applied_time, writer) "
        f"VALUES (:version, {CLOCKS[dialect]}, :writer)",
        driver,
    )
