"""Differences between the supported databases; each database is a subclass in its own file.

The defaults are those of PostgreSQL and SQLite, which have `ON CONFLICT`. All databases must have
`CREATE TABLE IF NOT EXISTS`, `BIGINT`, `LIMIT` and `SAVEPOINT`, and distinguish `''` from NULL.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy.engine import URL

from eventhub_checkpoints._shared.deadline import finite_seconds_left
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.stores.backends import SQL, Service
from eventhub_checkpoints.stores.sql.statements import insert_checkpoint, insert_ownership
from eventhub_checkpoints.stores.sql.tables import KEY, Tables

WAYS = (
    "store.create(), or at the store's first use with create_tables=True or create = true in a "
    "configuration"
)
NO_TABLE = f"a table does not exist: create it with {WAYS}"
OLD_TABLE = f"the tables are of another version: migrate them with {WAYS}"
WAIT_SHARE = 0.9
"""Maximum share of a call's time that is spent waiting for a lock."""
Meaning = tuple[type[CheckpointStoreError], str]
"""An error of this package, and what a code of the database means."""


class Dialect(ABC):
    """A database: how it is reached, its SQL, and its errors.

    Attributes:
        name: that SQLAlchemy has for it: the first scheme of its service.
        drivers: by variant, `sync` or `async`; the first is the default if a URL names none.
        is_server: whether it is more than a file.
        has_schemas: whether tables can be in a schema.
        pool_size: connections of one store.
        connect_args: arguments of the driver's connect function.
        skips_rollback: whether a connection may return to the pool without a rollback, because
            every statement is its own transaction.
        level: isolation level for transactions of several statements.
        quote: quotes an identifier.
        text, long_text, time: types of columns.
        key_types: types, by name, of the key columns that are not `text`.
        entry: type of the key of an entry of the history, of up to 48 characters.
        minute_entry: appends the number of the current minute to `:partition_key`; a format string
            for `clock`.
        table_options: end of every CREATE TABLE.
        clock: seconds since the epoch on the database's clock.
        unless_exists: makes an INSERT leave an existing row as it is.
        unless_kept: the same for an entry of the history; a format string for `Tables`.
        tie_breaker: column that orders entries of the history with the same time.
        row_lock: makes a SELECT lock its rows. They are locked in the order of their key, so that
            two transactions never deadlock.
        current_row: makes a SELECT see the newest row, even if the transaction's snapshot is older.
        hold_off: statement that takes the write lock and changes nothing, for a database that
            cannot lock rows; a format string for `Tables`.
        batch_savepoint: whether the statements of a batch are executed in a savepoint.
        transaction: the statement that begins a transaction, those that commit it, and those that
            roll it back, on a connection whose statements are transactions of their own. A change
            of its isolation level fails with an error of the driver if the connection is broken.
        fence: statement whose commit waits until everything that a read has shown is replicated as
            far as commits wait for it. None if commits are visible only then.
    """

    name: ClassVar[str]
    drivers: ClassVar[Mapping[str, Sequence[str]]]
    is_server: ClassVar[bool] = True
    has_schemas: ClassVar[bool] = False
    pool_size: ClassVar[int] = 4
    connect_args: ClassVar[Mapping[str, Any]] = {}
    skips_rollback: ClassVar[bool] = True
    level: ClassVar[str] = "READ COMMITTED"
    quote: ClassVar[str] = '"'
    text: ClassVar[str]
    long_text: ClassVar[str] = "text"
    time: ClassVar[str]
    key_types: ClassVar[Mapping[str, str]] = {}
    entry: ClassVar[str] = "text"
    minute_entry: ClassVar[str] = (
        "CAST(:partition_key AS text) || CAST(CAST({0} / 60 AS bigint) AS text)"
    )
    table_options: ClassVar[str] = ""
    clock: ClassVar[str]
    unless_exists: ClassVar[str] = "ON CONFLICT DO NOTHING"
    unless_kept: ClassVar[str] = "ON CONFLICT DO NOTHING"
    # Only a `rewind` and the `replaced` before it are written in the same microsecond.
    tie_breaker: ClassVar[str] = "kind"
    row_lock: ClassVar[str] = "FOR UPDATE"
    current_row: ClassVar[str] = ""
    hold_off: ClassVar[str | None] = None
    batch_savepoint: ClassVar[bool] = False
    transaction: ClassVar[tuple[str, Sequence[str], Sequence[str]]] = (
        "START TRANSACTION",
        ("COMMIT",),
        ("ROLLBACK",),
    )

    fence: ClassVar[str | None] = None

    @property
    def service(self) -> Service:
        """Return its row in the table of backends: title, extra, and what a URL looks like."""
        return SQL.service(self.name)

    @abstractmethod
    def options(self, driver: str, query: Mapping[str, Any]) -> Sequence[str]:
        """Return the options that a URL of this driver may have."""

    def check_url(self, url: URL) -> None:
        """Raise `ConfigurationError` if the URL names no database that can be shared."""

    def require_database(self, url: URL, shown: str) -> None:
        """Raise `StoreNotReadyError` if connecting would create a missing database."""

    def encrypted(self, url: URL) -> URL:
        """Return the URL with encryption required, because a token is sent in clear."""
        return url

    def sync_connect(self, driver: Any) -> Callable[..., Any] | None:
        """Return a connect function whose connections respect the deadline of the current call.

        None if the driver's own is used. `driver` is SQLAlchemy's DBAPI module.
        """
        return None

    def async_connect(self, driver: Any) -> Callable[..., Any] | None:
        """Return the same for asyncio, where calls are cancelled at their deadline."""
        return None

    def prepare_connection(self, connection: Any, record: Any) -> None:
        """Set up a new DBAPI connection."""

    def report_unreplicated(self, connection: Any, report: Callable[[object], None]) -> None:
        """Have commits reported that are confirmed although a standby may not have them.

        `connection` is the driver's.
        """

    def lock_timeout(self, current: int | None, is_own: bool) -> tuple[int, str] | None:
        """Return a limit for waiting for locks, and the statement that sets it.

        None if the current limit, which this method returned before, suits the time that is left.
        `is_own`: whether the connection belongs to the store.
        """
        return None

    def begin_migration(self, tables: Tables, is_own: bool) -> Sequence[str]:
        """Return statements that exclude other migrations until the transaction ends."""
        return ()

    @abstractmethod
    def has_versions(self, tables: Tables) -> str:
        """Return a query that yields a row if the table of versions exists."""

    def create_row(self, tables: Tables) -> str:
        """Return an exclusive INSERT of an ownership."""
        return f"{insert_ownership(tables, self.clock)} {self.unless_exists}"

    @abstractmethod
    def renew_batch(self, tables: Tables) -> str:
        """Return an UPDATE of the rows whose etag is that of the claim, locked in key order.

        It returns the new etags as rows, or its row count is exact.
        """

    @abstractmethod
    def create_batch(self, tables: Tables) -> str:
        """Return an INSERT that skips existing rows; its result is as that of `renew_batch`."""

    @abstractmethod
    def batch(self, rows: list[dict[str, Any]]) -> Any:
        """Return the parameters of `renew_batch` and `create_batch`."""

    def create_checkpoint(self, tables: Tables) -> str:
        """Return an exclusive INSERT of a checkpoint."""
        return f"{insert_checkpoint(tables, self.clock)} {self.unless_exists}"

    def force_checkpoint(self, tables: Tables, source: str = "") -> str:
        """Return a statement that creates a checkpoint, or overwrites it.

        `source`: as of `insert_checkpoint`.
        """
        names = (tables.offset, "sequence_number", "version", "last_modified_time", "writer")
        insert = insert_checkpoint(tables, self.clock, " AS held", source)
        return (
            f"{insert} ON CONFLICT ({KEY}) DO UPDATE "
            f"SET {', '.join(f'{name} = excluded.{name}' for name in names)}"
        )

    def forward_checkpoint(self, tables: Tables) -> Sequence[str]:
        """Return statements that create a checkpoint, or overwrite one that is not further."""
        return (
            f"{self.force_checkpoint(tables)} WHERE held.sequence_number IS NULL "
            "OR held.sequence_number <= excluded.sequence_number",
        )

    def history_index(self, tables: Tables) -> str:
        """Return a statement that creates the index of the history.

        If it exists, nothing is done, or the error counts as `is_duplicate`.
        """
        return (
            f"CREATE INDEX IF NOT EXISTS {tables.history_index} ON {tables.history} ({KEY}, time)"
        )

    def recorded_write(self, tables: Tables, write: str) -> str | None:
        """Return one statement for a write of a checkpoint and its entry in the history.

        It returns the number of older entries, or no row if the checkpoint was not written. None
        if the database has no such statement; then both are written in a transaction.
        """
        return None

    def recorded_rewind(self, tables: Tables) -> str | None:
        """Return the same for `force_checkpoint`, with an entry for the replaced row, too."""
        return None

    @abstractmethod
    def error(self, error: Exception, cause: BaseException, where: str) -> CheckpointStoreError:
        """Convert a driver's error.

        Args:
            error: SQLAlchemy's error, or one of the driver.
            cause: the driver's error.
            where: the database, for messages.
        """

    def is_duplicate(self, error: BaseException) -> bool:
        """Return whether a statement failed only because its row, table or column exists."""
        return False

    def must_reconnect(self, error: BaseException) -> bool:
        """Return whether a new connection may reach a server that takes writes."""
        return False


def lock_seconds() -> float:
    """Return how long the next request may wait for a lock."""
    return WAIT_SHARE * finite_seconds_left()


def first_line(message: str) -> str:
    """Return the first line of a message; the others repeat the statement, or give hints."""
    return masked(message.strip().partition("\n")[0])


def refusal(statement: str) -> str:
    """Return the privileges that a statement needs; a conditional write also reads."""
    named = re.findall(r"\b(INSERT|UPDATE|DELETE|CREATE)\b", statement)
    return f"the role lacks a right; this takes {' and '.join(dict.fromkeys(('SELECT', *named)))}"
