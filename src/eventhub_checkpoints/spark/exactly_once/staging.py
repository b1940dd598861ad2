"""Transfer of a batch's rows to the transaction, through the driver or a staging table."""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from eventhub_checkpoints.errors import ConfigurationError, StoreUnavailableError
from eventhub_checkpoints.spark.exactly_once.commit import open_sql_store, transact
from eventhub_checkpoints.stores.sql.statements import CLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, Row

    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

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
"""Column types by Spark type. SQLite has no types for times and decimals, so they are TEXT."""
MARKS = {"psycopg": "%s", "pysqlite": "?"}
KEY = ("staging_query", "staging_batch", "staging_attempt", "staging_task")


def column_types(types: Mapping[str, str], dialect: str) -> dict[str, str]:
    """Return the columns of the table for those of a DataFrame.

    Raises:
        ConfigurationError: a column has a name or type that the table cannot have.
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
    """Return column names as they are written in a statement."""
    return ", ".join(f'"{name}"' for name in names)


def exists(table: str, dialect: str) -> str:
    """Return a query that selects one row if the table exists.

    `CREATE TABLE IF NOT EXISTS` would need the privilege to create tables, even if it exists.
    """
    if dialect == "postgresql":
        return f"SELECT 1 WHERE to_regclass('{table}') IS NOT NULL"
    name = table.strip('"')
    return f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('{name}')"


def created(table: str, columns: Mapping[str, str], dialect: str) -> list[str]:
    """Return the statements that create the table; concurrent creators wait for each other."""
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
    """Return the statement that inserts a row with its key; the column values come first."""
    names = quoted([*columns, *KEY, "staging_time"])
    marks = ", ".join([mark] * (len(columns) + len(KEY)))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}, {now})"


def stale(table: str, query: str, attempt: str, oldest: str) -> str:
    """Return the statement that deletes rows of dead attempts, and rows older than `oldest`.

    A query makes one attempt at a time, so its other attempts are dead.
    """
    same = f"staging_query = '{query}' AND staging_attempt <> '{attempt}'" if query else "false"
    return f"DELETE FROM {table} WHERE {same} OR staging_time < {oldest}"


def spelled(kind: str, dialect: str) -> Callable[[Any], Any]:
    """Return a function that converts the values of a Spark column for the driver."""
    name = kind.partition("(")[0]
    as_text = dialect == "sqlite" and TYPES[dialect][name] == "TEXT"

    def say(value: Any) -> Any:
        if name == "timestamp" and value is not None:
            # Spark returns naive local times, which a database would read in another time zone.
            value = value.astimezone(UTC)
        return str(value) if as_text and value is not None else value

    return say


MAX_ROWS = 100_000
"""Default maximum number of rows of one batch in the driver's memory."""


class Results(Protocol):
    """Rows of one batch, ready to be written."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def begin(self, connection: "Connection") -> Any:
        """Return the argument of `write`; called inside the transaction."""

    def end(self, connection: "Connection") -> None:
        """Clean up, in the same transaction."""


class Collected:
    """Rows in the driver's memory."""

    def __init__(self, rows: "Sequence[Row]") -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def begin(self, connection: "Connection") -> "Sequence[Row]":
        """Return the rows."""
        return self.rows

    def end(self, connection: "Connection") -> None:
        """Do nothing: there is nothing to clean up."""

    @classmethod
    def of(cls, frame: "DataFrame", max_rows: int) -> "Collected":
        """Collect the rows of a DataFrame.

        Raises:
            ConfigurationError: there are more than `max_rows`.
        """
        # One row above the limit detects a batch that is too large without fetching all of it.
        rows = frame.limit(max_rows + 1).collect()
        if len(rows) > max_rows:
            raise ConfigurationError(
                f"a batch has more than {max_rows} rows, which is what the driver takes; aggregate "
                "them in transform=, have executors write them with staging=StagingTable(...), "
                "read less at a time with maxEventsPerTrigger, or give a higher max_rows="
            )
        return cls(rows)


STALE_AFTER = 24 * 3600.0
ROWS_AT_ONCE = 5000
"""Rows that a task holds in memory and inserts at once."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that executors have written to the staging table.

    Its `str` is a subquery, to be used as `INSERT .. SELECT .. FROM {it}`.

    Attributes:
        table: the staging table, quoted.
        columns: the names of the results' columns.
        attempt: the key that all rows of this attempt have.
        tasks: the keys of the tasks whose rows count; a task that Spark ran twice has written
            twice.
        count: the number of rows.
    """

    table: str
    columns: tuple[str, ...]
    attempt: str
    tasks: tuple[str, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def __str__(self) -> str:
        tasks = ", ".join(f"'{task}'" for task in self.tasks)
        return (
            f"(SELECT {quoted(self.columns)} FROM {self.table} WHERE staging_attempt = "
            f"'{self.attempt}' AND staging_task IN ({tasks})) AS staged"
        )

    def begin(self, connection: "Connection") -> "StagedRows":
        """Return these rows after verifying that all of them exist.

        Raises:
            StoreUnavailableError: rows are missing, perhaps after a crash of the server.
        """
        found = connection.exec_driver_sql(f"SELECT count(*) FROM {self}").scalar()
        if found != self.count:
            raise StoreUnavailableError(
                f"{self.table} holds {found} of {self.count} rows that executors have written"
            )
        return self

    def end(self, connection: "Connection") -> None:
        """Delete the rows of this attempt, including those of lost tasks."""
        connection.exec_driver_sql(
            f"DELETE FROM {self.table} WHERE staging_attempt = '{self.attempt}'"
        )


class StagingTable:
    """Table to which executors write the rows of large batches.

    If it does not exist, it is created in the schema of the store's tables, with the columns of the
    first batch and five more; on PostgreSQL it is unlogged. Use another name for other columns.

    Args:
        name: name of the table, which nothing else may use.
        stale_after: seconds after which rows that a crash has left are deleted. Those of the same
            query are deleted at its next batch.

    Raises:
        ConfigurationError: the name is not a valid table name.
    """

    def __init__(self, name: str, *, stale_after: float = STALE_AFTER) -> None:
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise ConfigurationError(f"staging table {name!r}: expected letters, digits and _")
        self.name = name
        self.stale_after = stale_after

    def take(
        self, frame: "DataFrame", store: "SqlCheckpointStore", url: str, batch_id: int
    ) -> StagedRows:
        """Let the executors write the rows of a DataFrame.

        Raises:
            ConfigurationError: a column has a type or name that the table cannot have, or the
                session is of Spark Connect.
        """
        database, types = store.database, dict(frame.dtypes)
        schema, dialect = database.tables.schema, database.dialect
        table = f'"{schema}"."{self.name}"' if schema else f'"{self.name}"'
        query, attempt = query_id(frame), uuid.uuid4().hex
        columns, now = column_types(types, dialect), CLOCKS[dialect]

        def prepare(connection: "Connection") -> None:
            is_there = connection.exec_driver_sql(exists(table, dialect)).first()
            for statement in () if is_there else created(table, columns, dialect):
                connection.exec_driver_sql(statement)
            oldest = f"{now} - {self.stale_after}"
            connection.exec_driver_sql(stale(table, query, attempt, oldest))

        transact(store, prepare)
        insert = insertion(table, columns, MARKS[database.driver], now)
        stage = partial(stage_rows, url, insert, tuple(types.values()), (query, batch_id, attempt))
        tasks = frame.rdd.mapPartitions(stage).collect()
        count = sum(rows for _, rows in tasks)
        return StagedRows(table, tuple(columns), attempt, tuple(task for task, _ in tasks), count)


def query_id(frame: "DataFrame") -> str:
    """Return the id of the streaming query of this batch; `""` outside of a query.

    Raises:
        ConfigurationError: the session is of Spark Connect, which cannot run this package's code on
            executors.
    """
    context = getattr(frame.sparkSession, "sparkContext", None)
    if context is None:
        raise ConfigurationError(
            "staging= needs classic Spark; with Spark Connect aggregate in transform=, or give a "
            "higher max_rows="
        )
    found = context.getLocalProperty("sql.streaming.queryId")
    return str(uuid.UUID(found)) if found else ""


def stage_rows(
    url: str,
    insert: str,
    kinds: tuple[str, ...],
    key: tuple[str, int, str],
    rows: "Iterable[Row]",
) -> "Iterator[tuple[str, int]]":
    """Write the rows of one task in one transaction, and yield the task's key and row count.

    Runs on an executor.
    """
    following = iter(rows)
    chunk = list(islice(following, ROWS_AT_ONCE))
    if not chunk:
        return
    task, count = uuid.uuid4().hex, 0

    def write(connection: "Connection") -> None:
        nonlocal chunk, count
        plain = [spelled(kind, connection.dialect.name) for kind in kinds]
        while chunk:
            values = [
                (*(say(one) for say, one in zip(plain, row, strict=True)), *key, task)
                for row in chunk
            ]
            connection.exec_driver_sql(insert, values)
            count += len(chunk)
            chunk = list(islice(following, ROWS_AT_ONCE))

    with open_sql_store(url) as store:
        transact(store, write)
    yield task, count
