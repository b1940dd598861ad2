"""The staging table as text: its columns, and how a row comes into it."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
TYPES: Mapping[str, Mapping[str, str]] = {
    "postgresql": {
        "string": "text",
        "binary": "bytea",
        "boolean": "boolean",
        "tinyint": "smallint",
        "smallint": "smallint",
        "int": "integer",
        "bigint": "bigint",
        "float": "real",
        "double": "double precision",
        "decimal": "numeric",
        "date": "date",
        "timestamp": "timestamp with time zone",
        "timestamp_ntz": "timestamp without time zone",
    },
    "sqlite": {
        "string": "TEXT",
        "binary": "BLOB",
        "boolean": "INTEGER",
        "tinyint": "INTEGER",
        "smallint": "INTEGER",
        "int": "INTEGER",
        "bigint": "INTEGER",
        "float": "REAL",
        "double": "REAL",
        "decimal": "TEXT",
        "date": "TEXT",
        "timestamp": "TEXT",
        "timestamp_ntz": "TEXT",
    },
}
"""The type of a column, by Spark's; SQLite has none for times and decimals, which become text."""
MARKS = {"psycopg": "%s", "pysqlite": "?"}
KEY = ("staging_query", "staging_batch", "staging_attempt", "staging_task")


def column_types(types: Mapping[str, str], dialect: str) -> dict[str, str]:
    """The columns of the table by those of a frame.

    Raises:
        ConfigurationError: a name or type cannot be one of a table.
    """
    known = TYPES[dialect]
    for name, kind in types.items():
        if not NAME.fullmatch(name) or name.startswith("staging_"):
            raise ConfigurationError(
                f"column {name!r} cannot be staged: expected letters, digits and _; rename it"
            )
        if kind.partition("(")[0] not in known:
            raise ConfigurationError(
                f"column {name} is of type {kind}, which cannot be staged; select it away, or "
                "make it text with to_json"
            )
    return {name: known[kind.partition("(")[0]] for name, kind in types.items()}


def quoted(names: Sequence[str]) -> str:
    """Names of columns as they are written in a statement."""
    return ", ".join(f'"{name}"' for name in names)


def exists(table: str, dialect: str) -> str:
    """Asks for a row if the table is there: to create it again takes a right, even if it is."""
    if dialect == "postgresql":
        return f"SELECT 1 WHERE to_regclass('{table}') IS NOT NULL"
    name = table.strip('"')
    return f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('{name}')"


def created(table: str, columns: Mapping[str, str], dialect: str) -> list[str]:
    """What creates the table; two that do so at once wait for each other."""
    own = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    keys = (
        "staging_query TEXT NOT NULL, staging_batch BIGINT NOT NULL, "
        "staging_attempt TEXT NOT NULL, staging_task TEXT NOT NULL, "
        "staging_time DOUBLE PRECISION NOT NULL"
    )
    if dialect == "sqlite":
        return [f"CREATE TABLE IF NOT EXISTS {table} ({own}, {keys})"]
    return [
        f"SELECT pg_advisory_xact_lock(hashtext('{table}'))",
        f"CREATE UNLOGGED TABLE IF NOT EXISTS {table} ({own}, {keys})",
    ]


def insertion(table: str, columns: Mapping[str, str], mark: str, now: str) -> str:
    """Writes a row with its key; the columns' values come first."""
    names = quoted([*columns, *KEY, "staging_time"])
    marks = ", ".join([mark] * (len(columns) + len(KEY)))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}, {now})"


def stale(table: str, query: str, attempt: str, oldest: str) -> str:
    """Removes what dead attempts have left: a query makes one attempt at a time."""
    same = f"staging_query = '{query}' AND staging_attempt <> '{attempt}'" if query else "false"
    return f"DELETE FROM {table} WHERE {same} OR staging_time < {oldest}"


def spelled(kind: str, dialect: str) -> Callable[[Any], Any]:
    """How the values of a column of Spark's are given to the driver."""
    name = kind.partition("(")[0]
    as_text = dialect == "sqlite" and TYPES[dialect][name] == "TEXT"

    def say(value: Any) -> Any:
        if name == "timestamp" and value is not None:
            # Spark gives local time without a zone, which a database would take for another.
            value = value.astimezone(UTC)
        return str(value) if as_text and value is not None else value

    return say
