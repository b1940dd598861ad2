# Derived from _async/database.py by tools/unasync.py; edit that file.
"""Database of a SQL store: engine, tables, transactions and errors."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from eventhub_checkpoints._shared._sync.compat import completed
from eventhub_checkpoints._shared.settings import did_you_mean
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    MissingDriverError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Scope, fresh_etag
from eventhub_checkpoints.stores._sync.base import ANY, AnyNumber, WritesInTransaction
from eventhub_checkpoints.stores._sync.hooks import HookRunner
from eventhub_checkpoints.stores.connections import (
    PASSWORD_TWICE,
    POSTGRES_TOKENS,
    default_credential,
    secret_source,
    why_unreached,
)
from eventhub_checkpoints.stores.sql._sync.engine import (
    COLOUR,
    DRIVERS,
    IDENTITY,
    Connection,
    Engine,
    core_engine,
    make_engine,
)
from eventhub_checkpoints.stores.sql.errors import READ_ONLY, postgres_failure, sqlite_failure
from eventhub_checkpoints.stores.sql.migrations import (
    MIGRATIONS,
    applied,
    has_versions,
    newest_version,
    preparations,
)
from eventhub_checkpoints.stores.sql.sqlite import LettingGo, busy_milliseconds, flush_each_commit
from eventhub_checkpoints.stores.sql.statements import Statements, statements
from eventhub_checkpoints.stores.sql.tables import (
    Statement,
    checkpoint_of,
    checkpoint_values,
    row_values,
    scope_values,
)
from eventhub_checkpoints.stores.sql.url import (
    WAYS_TO_A_TOKEN,
    check_options,
    driver_url,
    parsed,
    require_file,
    safe_for_tokens,
    shown,
    tables_of,
)

PATIENCE = "eventhub_checkpoints.busy_timeout"


def write_ahead(connection: Connection) -> None:
    """Enable WAL, so that readers continue while another program writes; the file keeps it."""
    connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def wait_for_locks(connection: Connection, milliseconds: int) -> None:
    """Set how long SQLite waits for another program's lock, unless already set."""
    if connection.info.get(PATIENCE) != milliseconds:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")
        connection.info[PATIENCE] = milliseconds


def count(connection: Connection, statement: Statement, values: Mapping[str, Any]) -> int:
    """Execute a statement; return the number of rows that it wrote."""
    result = connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.rowcount


def all_rows(
    connection: Connection, statement: Statement, values: Mapping[str, Any]
) -> Sequence[Any]:
    """Execute a query; return its rows."""
    result = connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.all()


try:
    from sqlalchemy import event
    from sqlalchemy.engine import URL
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as NoConnectionError
except ImportError as error:
    raise MissingDriverError.of_extra("the SQL store", "sql") from error

T = TypeVar("T")

OWN_LEVEL = "AUTOCOMMIT"
"""Every statement is its own transaction, which saves the round trips for BEGIN and COMMIT."""
POOL_SIZE = {"postgresql": 4, "sqlite": 1}
"""Connections of one store. On SQLite, several would poll for the file's only lock; in the pool,
calls wait in a queue.
"""


class SqlDatabase:
    """An engine of the store or of the caller, with its tables and statements."""

    def __init__(
        self,
        url_or_engine: str | Engine,
        namespace: str | None,
        schema: str | None,
        credential: Any,
        entra: bool,
        pool_timeout: float,
    ) -> None:
        self._owned: list[Callable[[], Any]] = []
        self._left: list[Any] = []
        self._is_own = False
        if isinstance(url_or_engine, str | URL):
            url = parsed(url_or_engine)
            self.tables = tables_of(url, namespace, schema)
            url = driver_url(url, DRIVERS, COLOUR)
            check_options(url.query, url.get_driver_name())
            self._engine = self._made(url, credential, entra, pool_timeout)
        else:
            self._engine = self._checked(url_or_engine, credential, entra)
            self.tables = tables_of(self._engine.url.set(query={}), namespace, schema)
        self.shown = shown(self._engine.url, self.tables)
        self.dialect = self._engine.dialect.name
        self.driver = self._engine.dialect.driver
        self.statements = statements(self.tables, self.dialect, self.driver)

    def _made(self, url: URL, credential: Any, entra: bool, pool_timeout: float) -> Engine:
        dialect = url.get_backend_name()
        if dialect == "sqlite" and (entra or credential is not None):
            raise ConfigurationError("a SQLite file takes no credential")
        if url.password is not None and (entra or credential is not None):
            raise ConfigurationError(PASSWORD_TWICE)
        if entra and credential is None:
            credential = default_credential(IDENTITY, WAYS_TO_A_TOKEN)
            self._owned.append(credential.close)
        if hasattr(credential, "get_token"):
            url = safe_for_tokens(url)
        engine = make_engine(
            url,
            secret_source(credential, POSTGRES_TOKENS),
            isolation_level=OWN_LEVEL,
            # On SQLite, a batch of claims is a transaction that is begun explicitly.
            skip_autocommit_rollback=dialect == "postgresql",
            pool_size=POOL_SIZE[dialect],
            max_overflow=0,
            pool_timeout=pool_timeout,
            pool_use_lifo=True,
            connect_args={"factory": LettingGo} if dialect == "sqlite" else {},
        )
        if dialect == "sqlite":
            event.listen(core_engine(engine), "connect", flush_each_commit)
        self._is_own = True
        self._owned.append(engine.dispose)
        return engine

    @staticmethod
    def _checked(engine: Any, credential: Any, entra: bool) -> Engine:
        if not isinstance(engine, Engine):
            raise ConfigurationError(
                f"the first argument is of type {type(engine).__name__}; expected a URL, or an "
                f"{Engine.__name__} of SQLAlchemy{did_you_mean(engine)}"
            )
        if credential is not None or entra:
            raise ConfigurationError("a ready engine has its own password; leave credential out")
        driver_url(engine.url, DRIVERS, COLOUR)
        return engine

    def statements_for(self, connection: Connection) -> Statements:
        """Return the statements in the parameter style of a caller's connection.

        Raises:
            ConfigurationError: it is not a connection to a database of this kind.
        """
        dialect = getattr(connection, "dialect", None)
        if dialect is None or dialect.name != self.dialect:
            kind = type(connection).__name__
            raise ConfigurationError(
                f"the connection is of type {kind}; expected a {Connection.__name__} of "
                f"SQLAlchemy to {self.dialect}, such as `session.connection()` gives"
            )
        if dialect.driver == self.driver:
            return self.statements
        return statements(self.tables, self.dialect, dialect.driver)

    def transact(self, work: Callable[..., T], *args: Any, isolation_level: str = OWN_LEVEL) -> T:
        """Run a function on a connection from the pool; roll back on an error."""
        if self.dialect == "sqlite" and not self._is_own:
            # Closed in mid-statement, a connection of the caller's engine would keep the lock.
            return completed(self._transact, work, *args, isolation_level=isolation_level)
        return self._transact(work, *args, isolation_level=isolation_level)

    def _transact(self, work: Callable[..., T], *args: Any, isolation_level: str) -> T:
        with self._engine.connect() as connection:
            if isolation_level != OWN_LEVEL or not self._is_own:
                connection.execution_options(isolation_level=isolation_level)
            try:
                if self.dialect == "sqlite":
                    wait_for_locks(connection, busy_milliseconds())
                answer = work(connection, *args)
            except Exception as error:
                # After READ_ONLY, a new connection may reach the primary instead of the standby. An
                # error that is not the database's leaves the driver's state undefined.
                if sqlstate(error) == READ_ONLY or not isinstance(error, DBAPIError):
                    connection.invalidate()
                raise
            if not self._is_own:
                # A listener of the caller may have begun a transaction.
                connection.commit()
            return answer

    def require_file(self) -> None:
        """Raise `StoreNotReadyError` if a SQLite file does not exist."""
        if self._is_own and self.dialect == "sqlite":
            require_file(self._engine.url, self.shown)

    def migrate(self, writer: str) -> None:
        """Apply missing migrations under a lock that excludes other migrations."""
        if self.transact(self._version) >= len(MIGRATIONS):
            return  # then no permission to create anything is needed
        if self.dialect == "sqlite" and self._is_own:
            self.transact(write_ahead)
        level = OWN_LEVEL if self.dialect == "sqlite" else "READ COMMITTED"
        self.transact(self._migrate, writer, isolation_level=level)

    def _migrate(self, connection: Connection, writer: str) -> None:
        if self.dialect == "sqlite":
            # Inside a transaction that the caller's engine began, BEGIN would fail.
            begin = "BEGIN IMMEDIATE" if self._is_own else "SAVEPOINT migration"
            connection.exec_driver_sql(begin)
        for text in preparations(self.tables, self.dialect):
            connection.exec_driver_sql(text)
        note = applied(self.tables, self.dialect, self.driver)
        for number in range(self._version(connection) + 1, len(MIGRATIONS) + 1):
            for text in MIGRATIONS[number - 1](self.tables, self.dialect):
                connection.exec_driver_sql(text)
            values = {"version": number, "writer": writer}
            connection.exec_driver_sql(note.text, note.filled(values))
        connection.commit()

    def _version(self, connection: Connection) -> int:
        found = connection.exec_driver_sql(has_versions(self.tables, self.dialect))
        if found.first() is None:
            return 0
        newest = connection.exec_driver_sql(newest_version(self.tables))
        return int(newest.scalar() or 0)

    def drop_connections(self) -> None:
        """Abandon the pool: closing it would end connections in use in another process or loop."""
        if self._is_own:
            self._left.append(core_engine(self._engine).pool)
            core_engine(self._engine).dispose(close=False)

    def close(self) -> None:
        """Close the engine and the credential that were created here."""
        for close in self._owned:
            close()

    def map_error(self, error: Exception) -> CheckpointStoreError | None:
        """Convert a driver's error to an error of this package; return None for any other error."""
        if isinstance(error, NoConnectionError):
            return StoreUnavailableError(f"{self.shown}: all connections of this store are in use")
        if isinstance(error, TimeoutError):
            return StoreUnavailableError(f"{self.shown}: no answer in time")
        cause = error.orig if isinstance(error, DBAPIError) else error
        of_files = isinstance(error, PermissionError | FileNotFoundError)
        if self.dialect == "postgresql" and isinstance(error, OSError) and not of_files:
            # asyncpg passes network errors through.
            return postgres_failure("08", str(error), self.shown, "", why_unreached(error))
        if self.dialect == "sqlite" and isinstance(error, DBAPIError):
            return sqlite_failure(getattr(cause, "sqlite_errorname", None), str(cause), self.shown)
        of_asyncpg = type(error).__module__.startswith("asyncpg.")
        if isinstance(error, DBAPIError) or of_asyncpg:
            said = getattr(error, "statement", None) or ""
            why = why_unreached(error)
            return postgres_failure(sqlstate(error), str(cause), self.shown, said, why)
        return None


def sqlstate(error: Exception) -> str | None:
    """Return the SQLSTATE of a driver's error."""
    return getattr(getattr(error, "orig", None) or error, "sqlstate", None)


class SqlTransactions(HookRunner, WritesInTransaction):
    """Reads and writes on a connection that the caller owns, and commits or rolls back.

    These writes are not checked against the store's state of a partition (its base and floor): the
    database compares the expected number. The caller also sets the time limits.
    """

    @property
    @abstractmethod
    def database(self) -> SqlDatabase:
        """Return the store's database; the connection must be to the same one."""

    def read_in(
        self, connection: Connection, scope: Scope, partition_ids: Sequence[str]
    ) -> dict[str, Checkpoint]:
        say = self.database.statements_for(connection)
        wanted = scope_values(scope) | {"partition_ids": list(partition_ids)}
        try:
            if say.hold_off is not None:
                count(connection, say.hold_off, {})
            rows = all_rows(connection, say.locked_checkpoints, wanted)
        except Exception as error:
            raise self._ours(error) from error
        return {row[0]: checkpoint_of(scope, row) for row in rows if row[0] in partition_ids}

    def write_in(
        self,
        connection: Connection,
        checkpoint: Checkpoint,
        *,
        expected_sequence_number: int | AnyNumber | None = ANY,
    ) -> None:
        say = self.database.statements_for(connection)
        values = checkpoint_values(replace(checkpoint, version=fresh_etag()), self.writer)
        statement = say.expected_checkpoint
        if isinstance(expected_sequence_number, AnyNumber):
            statement = say.forward_checkpoint
        elif expected_sequence_number is None:
            statement = say.create_checkpoint
        values["expected"] = expected_sequence_number
        key = row_values(checkpoint.scope, checkpoint.partition_id)
        try:
            if count(connection, statement, values):
                return
            found = all_rows(connection, say.checkpoint, key)
        except Exception as error:
            raise self._ours(error) from error
        raise StaleCheckpointError(
            checkpoint.partition_id,
            checkpoint.sequence_number or 0,
            checkpoint_of(checkpoint.scope, found[0]).sequence_number if found else None,
            "roll the transaction back",
        )

    def _ours(self, error: Exception) -> CheckpointStoreError:
        return error if isinstance(error, CheckpointStoreError) else self.map_error(error)
