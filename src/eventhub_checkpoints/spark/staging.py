"""Transactions of a SQL store, and staging of the rows of a batch.

Results pass through the driver's memory (`Collected`), or executors write them to a staging table
(`StagingTable`), from which the transaction moves them.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from eventhub_checkpoints._shared import secrets
from eventhub_checkpoints._shared.settings import require_seconds
from eventhub_checkpoints.abilities import WritesInTransaction
from eventhub_checkpoints.errors import ConfigurationError, StoreUnavailableError
from eventhub_checkpoints.registry import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

T = TypeVar("T")

SQL_STORE = "eventhub_checkpoints.sql:SqlCheckpointStore"


def open_sql_store(target: Any) -> "SqlCheckpointStore":
    """Return the store for a URL or an engine, or the store that is passed in.

    Tables are created on first use.

    Raises:
        ConfigurationError: the target is not a store of a SQL database.
    """
    if isinstance(target, WritesInTransaction):
        store: Any = target
    elif isinstance(target, str):
        store = open_store(target)
    else:
        store = open_store(SQL_STORE, url_or_engine=target)
    if not isinstance(store, WritesInTransaction) or not hasattr(store, "database"):
        raise ConfigurationError(
            f"{secrets.quoted(store)} cannot write inside a transaction; expected sqlite:///FILE, "
            "postgresql://USER:PASSWORD@HOST/DATABASE, an engine of SQLAlchemy, or an "
            "SqlCheckpointStore"
        )
    sql_store = cast("SqlCheckpointStore", store)
    sql_store.creates = sql_store.creates or sql_store is not target
    return sql_store


def transact(store: "SqlCheckpointStore", work: "Callable[[Connection], T]") -> T:
    """Run `work` in one transaction and commit it; roll back on an error."""

    def work_and_commit(connection: "Connection") -> T:
        result = work(connection)
        connection.commit()
        return result

    level = store.database.level
    return store.database.transact(work_and_commit, isolation_level=level)


MAX_ROWS = 100_000
"""Default maximum number of rows of one batch in the driver's memory."""


class Collected:
    """Rows in the driver's memory.

    Inside the transaction, `begin` returns the argument of `write`, and `end` cleans up.
    """

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
                f"a batch has more than {max_rows} rows, the limit of the driver; aggregate them "
                "in transform=, have executors write them with staging=StagingTable(...), read "
                "less at a time with maxEventsPerTrigger, or set a higher max_rows="
            )
        return cls(rows)


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
STAGING_DATABASES = ("postgresql", "sqlite")
TYPES: Mapping[str, tuple[str, str]] = {
    "string": ("text", "TEXT"),
    "binary": ("bytea", "BLOB"),
    "boolean": ("boolean", "INTEGER"),
    "tinyint": ("smallint", "INTEGER"),
    "smallint": ("smallint", "INTEGER"),
    "int": ("integer", "INTEGER"),
    "bigint": ("bigint", "INTEGER"),
    "float": ("real", "REAL"),
    "double": ("double precision", "REAL"),
    "decimal": ("numeric", "TEXT"),
    "date": ("date", "TEXT"),
    "timestamp": ("timestamp with time zone", "TEXT"),
    "timestamp_ntz": ("timestamp without time zone", "TEXT"),
}
"""Column types of `STAGING_DATABASES` by Spark type. SQLite has no types for times and decimals, so
they are TEXT.
"""
MARKS = {"psycopg": "%s", "pysqlite": "?"}
KEY = ("staging_query", "staging_batch", "staging_attempt", "staging_task")


def column_types(types: Mapping[str, str], dialect: str) -> dict[str, str]:
    """Return the columns of the table for those of a DataFrame.

    Raises:
        ConfigurationError: a column has a name or type that the table cannot have, or the
            database is neither PostgreSQL nor SQLite.
    """
    if dialect not in STAGING_DATABASES:
        raise ConfigurationError(
            f"staging= needs PostgreSQL or SQLite, not {dialect}: aggregate in transform=, or "
            "increase max_rows="
        )
    columns = {}
    for name, spark_type in types.items():
        if not NAME.fullmatch(name) or name.startswith("staging_"):
            raise ConfigurationError(
                f"column {name!r} cannot be staged: expected letters, digits and _; rename it"
            )
        known = TYPES.get(spark_type.partition("(")[0])
        if known is None:
            raise ConfigurationError(
                f"column {name} is of type {spark_type}, which cannot be staged; select it away, "
                "or convert it to a string with to_json"
            )
        columns[name] = known[STAGING_DATABASES.index(dialect)]
    return columns


def quoted(names: Sequence[str]) -> str:
    """Return column names as they are written in a statement."""
    return ", ".join(f'"{name}"' for name in names)


def prepare(table: str, columns: Mapping[str, str], dialect: str) -> tuple[str, list[str]]:
    """Return a query that selects one row if the table exists, and the statements to create it.

    `CREATE TABLE IF NOT EXISTS` alone would need the privilege to create tables, even if it exists.
    Concurrent creators wait for each other.
    """
    own = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    keys = (
        "staging_query TEXT NOT NULL, staging_batch BIGINT NOT NULL, "
        "staging_attempt TEXT NOT NULL, staging_task TEXT NOT NULL, "
        "staging_time DOUBLE PRECISION NOT NULL"
    )
    if dialect == "sqlite":
        name = table.strip('"')
        return (
            f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('{name}')",
            [f"CREATE TABLE IF NOT EXISTS {table} ({own}, {keys})"],
        )
    return f"SELECT 1 WHERE to_regclass('{table}') IS NOT NULL", [
        f"SELECT pg_advisory_xact_lock(hashtext('{table}'))",
        f"CREATE UNLOGGED TABLE IF NOT EXISTS {table} ({own}, {keys})",
    ]


def converter(spark_type: str, dialect: str) -> Callable[[Any], Any]:
    """Return a function that converts the values of a Spark column for the driver."""
    name = spark_type.partition("(")[0]
    is_text = dialect == "sqlite" and TYPES[name][1] == "TEXT"

    def convert(value: Any) -> Any:
        if name == "timestamp" and value is not None:
            # Spark returns naive local times, which a database would read in another time zone.
            value = value.astimezone(UTC)
        return str(value) if is_text and value is not None else value

    return convert


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
        count = connection.exec_driver_sql(f"SELECT count(*) FROM {self}").scalar()
        if count != self.count:
            raise StoreUnavailableError(
                f"{self.table} holds only {count} of the {self.count} rows that executors have "
                "written"
            )
        return self

    def end(self, connection: "Connection") -> None:
        """Delete the rows of this attempt, including those of lost tasks."""
        connection.exec_driver_sql(
            f"DELETE FROM {self.table} WHERE staging_attempt = '{self.attempt}'"
        )


Results = Collected | StagedRows
"""Rows of one batch, ready to be written."""


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
            raise ConfigurationError(
                f"the name of the staging table is {name!r}; expected letters, digits and _"
            )
        require_seconds("stale_after", stale_after)
        self.name = name
        self.stale_after = stale_after

    def take(
        self, frame: "DataFrame", store: "SqlCheckpointStore", url: str, batch_id: int
    ) -> StagedRows:
        """Write the rows of a DataFrame from the executors.

        Raises:
            ConfigurationError: a column has a type or name that the table cannot have, or the
                session is of Spark Connect.
        """
        database, types = store.database, dict(frame.dtypes)
        schema, dialect = database.tables.schema, database.dialect
        table = f'"{schema}"."{self.name}"' if schema else f'"{self.name}"'
        query, attempt = query_id(frame), uuid.uuid4().hex
        columns, now = column_types(types, dialect), database.clock
        exists, creation = prepare(table, columns, dialect)

        def create_and_clean(connection: "Connection") -> None:
            if connection.exec_driver_sql(exists).first() is None:
                for statement in creation:
                    connection.exec_driver_sql(statement)
            # A query makes one attempt at a time, so its other attempts are dead.
            dead = f"staging_query = '{query}' AND staging_attempt <> '{attempt}'"
            connection.exec_driver_sql(
                f"DELETE FROM {table} WHERE {dead if query else 'false'} "
                f"OR staging_time < {now} - {self.stale_after}"
            )

        transact(store, create_and_clean)
        names = quoted([*columns, *KEY, "staging_time"])
        marks = ", ".join([MARKS[database.driver]] * (len(columns) + len(KEY)))
        insert = f"INSERT INTO {table} ({names}) VALUES ({marks}, {now})"
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
            "staging= needs classic Spark; with Spark Connect aggregate in transform=, or set a "
            "higher max_rows="
        )
    query = context.getLocalProperty("sql.streaming.queryId")
    return str(uuid.UUID(query)) if query else ""


def stage_rows(
    url: str,
    insert: str,
    types: tuple[str, ...],
    key: tuple[str, int, str],
    rows: "Iterable[Row]",
) -> "Iterator[tuple[str, int]]":
    """Write the rows of one task in one transaction, and yield the task's key and row count.

    Runs on an executor.
    """
    rows = iter(rows)
    chunk = list(islice(rows, ROWS_AT_ONCE))
    if not chunk:
        return
    task, count = uuid.uuid4().hex, 0

    def write(connection: "Connection") -> None:
        nonlocal chunk, count
        converters = [converter(each, connection.dialect.name) for each in types]
        while chunk:
            values = [
                (
                    *(convert(cell) for convert, cell in zip(converters, row, strict=True)),
                    *key,
                    task,
                )
                for row in chunk
            ]
            connection.exec_driver_sql(insert, values)
            count += len(chunk)
            chunk = list(islice(rows, ROWS_AT_ONCE))

    with open_sql_store(url) as store:
        transact(store, write)
    yield task, count
