# Derived from _async/database.py by tools/unasync.py; edit that file.
"""Database of a SQL store: engine, tables, transactions and errors."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import TextClause
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from eventhub_checkpoints._shared._sync.compat import completed
from eventhub_checkpoints._shared.clouds import PUBLIC, cloud_of
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.connections import (
    PASSWORD_TWICE,
    checked_audience,
    default_credential,
    given_once,
    scope_of,
    secret_source,
)
from eventhub_checkpoints.stores.sql import statements, tables
from eventhub_checkpoints.stores.sql import url as urls
from eventhub_checkpoints.stores.sql._sync.engine import (
    IDENTITY,
    VARIANT,
    Connection,
    Engine,
    close_idle,
    core_engine,
    driver_of,
    make_engine,
)
from eventhub_checkpoints.stores.suggestions import did_you_mean

T = TypeVar("T")

OWN_LEVEL = "AUTOCOMMIT"
"""Every statement is its own transaction, which saves the round trips for BEGIN and COMMIT."""
LOCK_TIMEOUT = "eventhub_checkpoints.lock_timeout"
UNREPLICATED = "eventhub_checkpoints.unreplicated"
"""Key of a connection's commits that its server did not wait for a standby with."""
WAYS_TO_A_TOKEN = (
    "entra=True takes the default credential of azure-identity, which is not installed: "
    "python -m pip install azure-identity, or pass a credential"
)


class SqlDatabase:
    """An engine of the store or of the caller, with its tables and statements."""

    def __init__(
        self,
        url_or_engine: str | Engine,
        namespace: str | None,
        schema: str | None,
        credential: Any,
        entra: bool,
        audience: str | None,
        pool_timeout: float,
    ) -> None:
        self._owned: list[Callable[[], Any]] = []
        self._left: list[tuple[int, Any]] = []
        self._is_own = isinstance(url_or_engine, str | URL)
        if isinstance(url_or_engine, str | URL):
            full_url = urls.parsed(url_or_engine)
            url, self._dialect = urls.driver_url(full_url, VARIANT)
            self.tables = urls.tables_of(full_url, self._dialect, namespace, schema)
            urls.check_options(full_url.query, self._dialect, url.get_driver_name())
            audience = given_once("audience", audience, full_url.query.get("audience"))
            self._engine = self._made(url, credential, entra, audience, pool_timeout)
        else:
            self._engine = self._checked(url_or_engine, credential, entra, audience)
            url = self._engine.url.set(query={})
            self._dialect = urls.driver_url(url, VARIANT)[1]
            self.tables = urls.tables_of(url, self._dialect, namespace, schema)
        self.shown = urls.shown(self._engine.url, self.tables)
        self.dialect = self._dialect.name
        self.is_server = self._dialect.is_server
        self.driver = self._engine.dialect.driver
        self.level, self.clock = self._dialect.level, self._dialect.clock
        self.statements = statements.Statements(self.tables, self._dialect)

    def _made(
        self, url: URL, credential: Any, entra: bool, audience: str | None, pool_timeout: float
    ) -> Engine:
        dialect = self._dialect
        if not dialect.is_server and (entra or credential is not None or audience is not None):
            raise ConfigurationError(
                "a SQLite file takes no credential; leave credential, entra and audience out"
            )
        if url.password is not None and (entra or credential is not None):
            raise ConfigurationError(PASSWORD_TWICE)
        audience = checked_audience(audience, credential, entra)
        host = urls.host_of(url)
        if entra and credential is None:
            credential = default_credential(IDENTITY, host, WAYS_TO_A_TOKEN)
            self._owned.append(credential.close)
        if hasattr(credential, "get_token"):
            url = dialect.encrypted(url)
        engine = make_engine(
            url,
            dialect,
            secret_source(
                credential, scope_of(audience or (cloud_of(host) or PUBLIC).database_audience)
            ),
            isolation_level=OWN_LEVEL,
            skip_autocommit_rollback=dialect.skips_rollback,
            pool_size=dialect.pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout,
            pool_use_lifo=True,
            connect_args={**dialect.connect_args},
        )
        self._owned.append(engine.dispose)
        return engine

    @staticmethod
    def _checked(engine: Any, credential: Any, entra: bool, audience: str | None) -> Engine:
        if not isinstance(engine, Engine):
            raise ConfigurationError(
                f"the first argument is of type {type(engine).__name__}; expected a URL, or an "
                f"{Engine.__name__} of SQLAlchemy{did_you_mean(engine)}"
            )
        if credential is not None or entra or audience is not None:
            raise ConfigurationError(
                "a ready engine has its own password; leave credential, entra and audience out"
            )
        return engine

    @property
    def transaction_level(self) -> str:
        """Return the isolation level for several statements; on SQLite they are in a savepoint."""
        return self.level if self._dialect.is_server else OWN_LEVEL

    def check_connection(self, connection: Connection) -> None:
        """Raise `ConfigurationError` if it is not a connection to a database of this kind."""
        dialect = getattr(connection, "dialect", None)
        if dialect is None or urls.DIALECTS.get(dialect.name) is not self._dialect:
            kind = type(connection).__name__
            raise ConfigurationError(
                f"the connection is of type {kind}; expected a {Connection.__name__} of "
                f"SQLAlchemy to {self.dialect}, such as `session.connection()` gives"
            )

    def transact(self, work: Callable[..., T], *args: Any, isolation_level: str = OWN_LEVEL) -> T:
        """Run a function on a connection from the pool; roll back on an error."""
        if not (self._dialect.is_server or self._is_own):
            # SQLite: a connection of the caller's engine that is closed in mid-statement keeps its
            # lock, so a cancelled call is completed first.
            return completed(self._transact, work, *args, isolation_level=isolation_level)
        return self._transact(work, *args, isolation_level=isolation_level)

    def _transact(self, work: Callable[..., T], *args: Any, isolation_level: str) -> T:
        with self._engine.connect() as connection:
            if isolation_level != OWN_LEVEL or not self._is_own:
                connection.execution_options(isolation_level=isolation_level)
            try:
                info = connection.info
                if UNREPLICATED not in info:
                    commits: list[object] = []
                    self._dialect.report_unreplicated(driver_of(connection), commits.append)
                    info[UNREPLICATED] = commits
                info[UNREPLICATED].clear()
                if change := self._dialect.lock_timeout(info.get(LOCK_TIMEOUT), self._is_own):
                    connection.exec_driver_sql(change[1])
                    info[LOCK_TIMEOUT] = change[0]
                answer = work(connection, *args)
            except Exception as error:
                # After an error that is not the database's, the driver's state is undefined.
                if self._dialect.must_reconnect(error) or not isinstance(error, DBAPIError):
                    connection.invalidate()
                raise
            if not self._is_own:
                # A listener of the caller may have begun a transaction.
                connection.commit()
            if info[UNREPLICATED]:
                raise StoreUnavailableError(
                    f"{self.shown}: the server stopped waiting for its synchronous standby, which "
                    "may not have what was written"
                )
            return answer

    def confirm(self) -> None:
        """Wait until a synchronous standby has what this connection's server shows."""
        if fence := self._dialect.fence:
            self.transact(self._execute, fence)

    def rows(
        self, connection: Connection, statement: TextClause, values: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Execute a query; return its rows."""
        return (connection.execute(statement, values)).all()

    def write(
        self, connection: Connection, alternatives: statements.Write, values: Mapping[str, Any]
    ) -> bool:
        """Execute the statements of a conditional write in turn; return whether one wrote a row."""
        for statement in alternatives:
            try:
                if (connection.execute(statement, values)).rowcount:
                    return True
            except DBAPIError as error:
                if not self._dialect.is_duplicate(error):
                    raise
        return False

    def write_batch(
        self, connection: Connection, statement: TextClause, rows: list[dict[str, Any]]
    ) -> set[str]:
        """Execute a statement for a batch of claims; return the etags of those that won."""
        sql = self.statements
        # Not BEGIN, which fails inside a transaction that the caller's engine has begun.
        if self._dialect.batch_savepoint:
            connection.exec_driver_sql("SAVEPOINT claims")
        result = connection.execute(statement, self._dialect.batch(rows))
        if result.returns_rows:
            return {etag for (etag,) in result}
        etags: set[str] = set()
        if statement is sql.renew_batch and result.rowcount == len(rows):
            etags = {row["new_etag"] for row in rows}  # every row matched
        else:
            for scope in {Scope._make(row[name] for name in tables.NAMES) for row in rows}:
                values = statements.scope_values(scope)
                etags |= {row[0] for row in self.rows(connection, sql.etags, values)}
        if self._dialect.batch_savepoint:
            connection.exec_driver_sql("RELEASE claims")
        return etags

    def require_database(self) -> None:
        """Raise `StoreNotReadyError` if a SQLite file does not exist."""
        if self._is_own:
            self._dialect.require_database(self._engine.url, self.shown)

    def migrate(self, writer: str) -> None:
        """Apply missing migrations under a lock that excludes other migrations."""
        version = self.transact(self._version)
        if version >= len(tables.MIGRATIONS):
            return  # then no permission to create anything is needed
        try:
            self.transact(self._migrate, writer, isolation_level=self.transaction_level)
        except Exception as error:
            failure = self.map_error(error)
            if version < tables.REQUIRED or not isinstance(failure, StoreAccessError):
                raise
            # A consumer that has no right to migrate the tables worked before, and still does.
            log.warning("the tables were not migrated: %s", failure)

    def create_table(self, statement: str) -> None:
        """Execute a CREATE TABLE under the same lock; nothing happens if the table exists."""
        self.transact(self._create_table, statement, isolation_level=self.transaction_level)

    def _create_table(self, connection: Connection, statement: str) -> None:
        self._begin_migration(connection)
        self._execute(connection, statement)
        connection.commit()

    def _begin_migration(self, connection: Connection) -> None:
        for statement in self._dialect.begin_migration(self.tables, self._is_own):
            connection.exec_driver_sql(statement)

    def _migrate(self, connection: Connection, writer: str) -> None:
        names, dialect = self.tables, self._dialect
        self._begin_migration(connection)
        self._execute(connection, tables.version_table(names, dialect))
        applied = statements.applied(names, dialect)
        for number in range(self._version(connection) + 1, len(tables.MIGRATIONS) + 1):
            for statement in tables.MIGRATIONS[number - 1](names, dialect):
                self._execute(connection, statement)
            self.write(connection, applied, {"version": number, "writer": writer})
        connection.commit()

    def _execute(self, connection: Connection, statement: str) -> None:
        try:
            connection.exec_driver_sql(statement)
        except DBAPIError as error:
            if not self._dialect.is_duplicate(error):
                raise

    def _version(self, connection: Connection) -> int:
        versions = connection.exec_driver_sql(self._dialect.has_versions(self.tables))
        if versions.first() is None:
            return 0
        newest = connection.exec_driver_sql(f"SELECT max(version) FROM {self.tables.version}")
        return int(newest.scalar() or 0)

    def drop_connections(self) -> None:
        """Abandon the pool: closing it would end connections in use in another process or loop."""
        if self._is_own:
            self._left.append((os.getpid(), core_engine(self._engine).pool))
            core_engine(self._engine).dispose(close=False)

    def close_left(self) -> None:
        """Close what other event loops have left of a SQLite file: a connection and its thread.

        Only aiosqlite can do that, whose connections do not belong to a loop. A pool of another
        process is kept: its threads do not exist here, and nothing would answer.
        """
        if self._dialect.is_server:
            return
        here = [pool for process_id, pool in self._left if process_id == os.getpid()]
        self._left = [left for left in self._left if left[0] != os.getpid()]
        for pool in here:
            close_idle(pool)

    def close(self) -> None:
        """Close the engine and the credential that were created here."""
        self.close_left()
        for close in self._owned:
            close()

    def map_error(self, error: Exception) -> CheckpointStoreError | None:
        """Convert a driver's error to an error of this package; return None for any other error."""
        if isinstance(error, NoConnectionError):
            return StoreUnavailableError(f"{self.shown}: all connections of this store are in use")
        if isinstance(error, TimeoutError):
            return StoreUnavailableError(f"{self.shown}: no answer in time")
        if isinstance(error, DBAPIError):
            return self._dialect.error(error, error.orig or error, self.shown)
        # SQLAlchemy does not wrap asyncpg's network errors, nor asyncpg's own errors at connect.
        of_files = isinstance(error, PermissionError | FileNotFoundError)
        of_network = isinstance(error, OSError) and not of_files and self._dialect.is_server
        if of_network or type(error).__module__.startswith("asyncpg."):
            return self._dialect.error(error, error, self.shown)
        return None
