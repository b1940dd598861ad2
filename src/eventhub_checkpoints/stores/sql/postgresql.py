"""PostgreSQL: statements, SQLSTATEs, and deadlines for a server that does not answer."""

import hashlib
import inspect
import math
import re
import time
from asyncio import CancelledError
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

from sqlalchemy.engine import URL

from eventhub_checkpoints._shared.connection_errors import why_unreached
from eventhub_checkpoints._shared.deadline import finite_seconds_left, seconds_left
from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.sql.dialect import (
    NO_TABLE,
    OLD_TABLE,
    Dialect,
    Meaning,
    first_line,
    refusal,
)
from eventhub_checkpoints.stores.sql.statements import (
    THIS_ROW,
    checkpoint_columns,
    columns,
    insert_entry,
    no_recent_entry,
)
from eventhub_checkpoints.stores.sql.tables import KEY, KEY_COLUMNS, Tables

NEW_SCHEMA = re.compile(r'CREATE SCHEMA ("\w+")')
READ_ONLY = "25006"
WAIT_FOR_STANDBY = "SyncRepWaitForLSN"
"""Function of the server that sends these notices; their text is in the server's language."""
CODES: dict[str, Meaning] = {
    READ_ONLY: (
        StoreUnavailableError,
        "the server takes no writes: it is a standby, or read-only by its settings; "
        "target_session_attrs=read-write in the URL finds the primary of several hosts",
    ),
    "28": (StoreAccessError, "the server refused the login; are user and password right?"),
    "TLS": (StoreAccessError, "no encrypted connection as sslmode wants it; is the server right?"),
    "OPTION": (ConfigurationError, "an option of the URL has a value that libpq does not take"),
    "3D000": (StoreNotReadyError, "the database does not exist; create it"),
    "3F000": (
        StoreNotReadyError,
        "no schema to create the tables in: name one with schema=, or create one of the role's "
        "search_path with CREATE SCHEMA",
    ),
    "40001": (StoreUnavailableError, "another transaction came first"),
    "40P01": (StoreUnavailableError, "a deadlock with another transaction"),
    "42501": (StoreAccessError, "the role lacks a right"),
    "42703": (StoreNotReadyError, OLD_TABLE),
    "42P01": (StoreNotReadyError, NO_TABLE),
    "53100": (StoreError, "the server's disk is full; nothing was changed"),
    "53": (StoreUnavailableError, "the server is short of resources"),
    "55P03": (StoreUnavailableError, "a lock was not free in time"),
    "57": (StoreUnavailableError, "the server ended the request"),
    "08": (StoreUnavailableError, "the connection broke"),
}
"""By SQLSTATE or its class; any other is final, and reported unchanged.

Source: PostgreSQL 18, "Appendix A. PostgreSQL Error Codes".
"""
CONNECT_MESSAGES = {
    "28P01": "password authentication failed|no pg_hba.conf entry|role .* does not exist"
    "|not permitted to log in",
    "3D000": "database .* does not exist",
    "42501": "permission denied",
    "OPTION": r'invalid (integer )?value "|invalid \w+ value: "',
    "TLS": "SSL was required|certificate verify failed|root certificate",
}
"""Messages of refusals at connect, where libpq reports no SQLSTATE. If the server's messages are in
another language, the refusal counts as an unavailable server: it is retried, then shown in full.
"""
NOT_STRINGS = {"dsn", "loop", "connection_class", "record_class", "server_settings"}
"""Arguments of asyncpg that are not strings, and cannot be options of a URL."""
TLS = {"psycopg": "sslmode", "asyncpg": "ssl"}

PROPOSED = (*KEY_COLUMNS, "owner_id", "etag", "new_etag")
PROPOSALS = (
    f"unnest({', '.join(f'CAST(:{name} AS text[])' for name in PROPOSED)}) "
    f"AS proposed({', '.join(PROPOSED)})"
)
"""A batch of claims as rows."""

NO_SUCH_SETTING = ("42704", "22023")
"""Of a server before version 14, and of one whose system cannot tell (Windows)."""
CANCEL_SHARE = 0.1
"""Share of the remaining time that is reserved for cancelling the request on the server."""
USUAL_CANCEL = 0.1
"""Seconds that a cancellation takes across a network: a separate connection, and one request."""
LEAST_CANCEL = 0.02
"""Seconds; psycopg treats a timeout of 0 as none."""


class Postgresql(Dialect):
    """PostgreSQL 12 or newer."""

    name = "postgresql"
    drivers: ClassVar = {"sync": ("psycopg",), "async": ("psycopg", "asyncpg")}
    has_schemas = True
    text, time = "text", "double precision"
    clock = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    # A commit that no longer waits for the standby is visible, and a read waits for nothing.
    fence = "SELECT pg_logical_emit_message(true, 'eventhub-checkpoints', '')"

    def options(self, driver: str, query: Mapping[str, Any]) -> Sequence[str]:
        if driver == "asyncpg":
            arguments = inspect.signature(import_module("asyncpg").connect).parameters
            # Source: SQLAlchemy 2.0, `asyncpg.py`, `create_connect_args`.
            own = "prepared_statement_cache_size"
            return (own, *(name for name in arguments if name not in NOT_STRINGS))
        defaults = import_module("psycopg").pq.Conninfo.get_defaults()
        return [option.keyword.decode() for option in defaults]

    def encrypted(self, url: URL) -> URL:
        name = TLS[url.get_driver_name()]
        return url if name in url.query else url.update_query_dict({name: "require"})

    def sync_connect(self, driver: Any) -> Callable[..., Any]:
        return bounded_psycopg(driver)

    def async_connect(self, driver: Any) -> Callable[..., Any]:
        if hasattr(driver, "asyncpg"):
            return bounded_asyncpg(driver.asyncpg)
        return bounded_async_psycopg(driver.psycopg)

    def prepare_connection(self, connection: Any, record: Any) -> None:
        """Have the server notice within a second that this client is gone.

        A request that waits for a lock is cancelled at the end of its call. Where there is no time
        for that, its connection is closed, and the server would carry it out much later.

        Source: PostgreSQL 18, "19.3.2. TCP Settings", `client_connection_check_interval`.
        """
        cursor = connection.cursor()
        try:
            cursor.execute("SET client_connection_check_interval = '1s'")
        except Exception as error:
            if getattr(error, "sqlstate", None) not in NO_SUCH_SETTING:
                raise
            connection.rollback()
        else:
            connection.commit()
        finally:
            cursor.close()

    def report_unreplicated(self, connection: Any, report: Callable[[object], None]) -> None:
        """Have the notices reported with which a commit gives up its wait for the standby.

        It is committed on this server only, and confirmed: by a cancelled request, or by a backend
        that is terminated.

        Source: PostgreSQL 18, `src/backend/replication/syncrep.c`, `SyncRepWaitForLSN`.
        """

        def hear(sender: str | None, notice: object) -> None:
            if sender == WAIT_FOR_STANDBY:
                report(notice)

        if hasattr(connection, "add_notice_handler"):  # psycopg
            connection.add_notice_handler(lambda notice: hear(notice.source_function, notice))
        else:
            connection.add_log_listener(
                lambda _, notice: hear(notice.server_source_function, notice)
            )

    def begin_migration(self, tables: Tables, is_own: bool) -> Sequence[str]:
        digest = hashlib.sha256(tables.version.encode()).digest()
        lock = f"SELECT pg_advisory_xact_lock({int.from_bytes(digest[:8], signed=True)})"
        if not tables.schema:
            return (lock,)
        # IF NOT EXISTS requires the permission to create schemas even if the schema exists.
        return (
            lock,
            f"DO $$ BEGIN IF to_regnamespace('\"{tables.schema}\"') IS NULL "
            f'THEN CREATE SCHEMA "{tables.schema}"; END IF; END $$',
        )

    def has_versions(self, tables: Tables) -> str:
        return f"SELECT 1 WHERE to_regclass('{tables.version}') IS NOT NULL"

    def renew_batch(self, tables: Tables) -> str:
        """Return the renewal of a batch, which compares each row's etag after locking the row.

        The rows are locked in key order, so that two batches never deadlock. An UPDATE alone locks
        them in the order of its plan.

        Source: PostgreSQL 18, "13.2.1. Read Committed Isolation Level" and "13.3.4. Deadlocks".
        """
        same = " AND ".join(f"own.{name} = locked.{name}" for name in KEY_COLUMNS)
        return (
            f"WITH locked AS (SELECT {KEY}, proposed.owner_id, new_etag FROM {tables.ownership} "
            f"AS own JOIN {PROPOSALS} USING ({KEY}) WHERE own.etag = proposed.etag "
            f"ORDER BY {KEY} FOR UPDATE OF own) "
            f"UPDATE {tables.ownership} AS own SET owner_id = locked.owner_id, "
            f"etag = locked.new_etag, last_modified_time = {self.clock} FROM locked "
            f"WHERE {same} RETURNING own.etag"
        )

    def create_batch(self, tables: Tables) -> str:
        return (
            f"INSERT INTO {tables.ownership} ({KEY}, owner_id, etag, last_modified_time) "
            f"SELECT {KEY}, owner_id, new_etag, {self.clock} FROM {PROPOSALS} ORDER BY {KEY} "
            "ON CONFLICT DO NOTHING RETURNING etag"
        )

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        return columns(rows)

    def recorded_write(self, tables: Tables, write: str) -> str:
        """Return the write with its entry, which are one transaction and one round trip.

        Source: PostgreSQL 18, "7.8.4. Data-Modifying Statements in WITH".
        """
        copied = checkpoint_columns(tables)
        minute = self.minute_entry.format(self.clock)
        return (
            f"WITH written AS ({write} RETURNING {copied}), "
            f"kept AS ({insert_entry(tables)} SELECT {minute}, {self.clock}, 'checkpoint', "
            f"{copied} FROM written WHERE {no_recent_entry(tables, self.clock)} "
            f"{self.unless_kept}) SELECT ({self._older_entries(tables)}) FROM written"
        )

    def recorded_rewind(self, tables: Tables) -> str:
        """Return the rewind with its two entries.

        The steps of one statement have no order of their own, so the write reads the locked row.
        After waiting for the lock, that is the newest one, even if the snapshot is older.
        """
        copied, insert = checkpoint_columns(tables), insert_entry(tables)
        write = self.force_checkpoint(tables, "(SELECT count(*) FROM locked) AS rows_before")
        return (
            f"WITH locked AS (SELECT {copied} FROM {tables.checkpoint} WHERE {THIS_ROW} "
            f"FOR UPDATE), written AS ({write} RETURNING {copied}), "
            f"replaced AS ({insert} SELECT :replaced_key, written_time, 'replaced', {copied} "
            "FROM locked, (SELECT last_modified_time AS written_time FROM written) AS moment "
            f"WHERE version <> :version {self.unless_kept}), "
            f"kept AS ({insert} SELECT version, last_modified_time, 'rewind', {copied} "
            f"FROM written {self.unless_kept}) "
            f"SELECT ({self._older_entries(tables)}) FROM written"
        )

    @staticmethod
    def _older_entries(tables: Tables) -> str:
        return f"SELECT count(*) FROM {tables.history} WHERE {THIS_ROW}"

    def error(self, error: Exception, cause: BaseException, where: str) -> CheckpointStoreError:
        message, statement = unmasked_message(cause), getattr(error, "statement", None) or ""
        sqlstate = "08" if isinstance(error, OSError) else getattr(cause, "sqlstate", None)
        code = sqlstate or next(
            (key for key, words in CONNECT_MESSAGES.items() if re.search(words, message)), "08"
        )
        kind, meaning = CODES.get(code) or CODES.get(code[:2]) or (StoreError, "it failed")
        if code[:2] == "08":
            meaning = why_unreached(error) or meaning
        if code == "42501" and (schema := NEW_SCHEMA.search(statement)):
            meaning = (
                f"schema {schema[1]} does not exist, and the role may not create it: say CREATE "
                f"SCHEMA {schema[1]} as one who may, and GRANT USAGE, CREATE on it to the role"
            )
        elif code == "42501" and statement:
            meaning = refusal(statement)
        return kind(f"{where}: {meaning} ({sqlstate or 'no code'}: {first_line(message)})")

    def must_reconnect(self, error: BaseException) -> bool:
        return getattr(getattr(error, "orig", None) or error, "sqlstate", None) == READ_ONLY


class CutOffError(Exception):
    """The server did not answer in time. Not an OSError: psycopg would assume a closed socket."""


def cut_off(operation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run an operation of psycopg; raise if it still waits when the time is over.

    psycopg waits for its socket in a loop that wakes up ten times a second and notifies the
    operation, a generator, that nothing is ready. No timeout of libpq or of TCP ends that wait. An
    operation that leaves no time for its cancellation is not started: the server might carry it
    out long afterwards.

    Raises:
        CutOffError: the operation still waited when the time was over.
    """
    left = seconds_left()
    kept = min(max(CANCEL_SHARE * left, USUAL_CANCEL), left / 2)
    if kept <= LEAST_CANCEL:
        raise CutOffError("no time was left for this request")
    over = math.inf if math.isinf(left) else time.monotonic() + left - kept
    try:
        events = next(operation)
        while True:
            ready = yield events
            if not ready and time.monotonic() >= over:
                raise CutOffError("the server did not answer in time")
            events = operation.send(ready)
    except StopIteration as end:
        return end.value


def interval() -> float:
    """Return the interval at which a wait checks the deadline, in seconds."""
    return min(0.1, max(seconds_left() / 20, 0.005))


def cancel_seconds() -> float | None:
    """Return how long to wait for a cancellation by the server; None if no time is left."""
    return seconds_left() if seconds_left() > LEAST_CANCEL else None


def connect_seconds(option: Any) -> int:
    """Return the `connect_timeout` of a new connection, or that of the URL if it is less.

    At least 2 whole seconds, as libpq and psycopg require; the operation itself has a deadline.

    Raises:
        ConfigurationError: the URL's value is not a number.
    """
    left = finite_seconds_left()
    try:
        return max(int(min(left, float(option)) if option else left), 2)
    except ValueError:
        raise ConfigurationError(
            f"the option connect_timeout of the URL is {quoted(option)}; expected seconds"
        ) from None


def bounded_psycopg(driver: Any) -> Callable[..., Any]:
    """Return psycopg's connect function with deadlines for an unresponsive server."""

    class Bounded(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Connection that waits until the deadline of the current call."""

        @classmethod
        def _connect_gen(cls, *arguments: Any, **options: Any) -> Any:
            # If a version of psycopg does not call it, a connect takes at least 2 s.
            return cut_off(super()._connect_gen(*arguments, **options))

        def wait(self, operation: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return super().wait(cut_off(operation), interval=interval())
            except CutOffError as error:
                try:
                    # The request may be waiting for a lock, and would be carried out much later. An
                    # old libpq can cancel it only by waiting for an answer, perhaps for ever.
                    if driver.capabilities.has_cancel_safe() and (seconds := cancel_seconds()):
                        self.cancel_safe(timeout=seconds)
                except driver.Error:
                    pass
                finally:
                    self.pgconn.finish()
                raise driver.OperationalError(unmasked_message(error)) from None

    def connect(*arguments: Any, **options: Any) -> Any:
        seconds = connect_seconds(options.get("connect_timeout"))
        try:
            return Bounded.connect(*arguments, **{**options, "connect_timeout": seconds})
        except CutOffError as error:
            raise driver.OperationalError(unmasked_message(error)) from None

    return connect


def bounded_async_psycopg(driver: Any) -> Callable[..., Any]:
    """Return the same for asyncio.

    Cancelling the task is not enough: psycopg then asks the unresponsive server to cancel the
    request, and waits for that.
    """

    class Bounded(driver.AsyncConnection):  # type: ignore[misc]  # the driver is known only here
        """Connection that waits until the deadline of the current call."""

        async def wait(self, operation: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return await super().wait(cut_off(operation), interval=interval())
            except CutOffError as error:
                try:
                    # The request may be waiting for a lock, and would be carried out much later.
                    if (seconds := cancel_seconds()) is not None:
                        await self.cancel_safe(timeout=seconds)
                except driver.Error:
                    pass
                finally:
                    self.pgconn.finish()
                raise driver.OperationalError(unmasked_message(error)) from None
            except CancelledError:
                # The next request must not receive the response to this one.
                self.pgconn.finish()
                raise

    async def connect(*arguments: Any, **options: Any) -> Any:
        seconds = connect_seconds(options.get("connect_timeout"))
        return await Bounded.connect(*arguments, **{**options, "connect_timeout": seconds})

    return connect


def bounded_asyncpg(driver: Any) -> Callable[..., Any]:
    """Return asyncpg's connect function, with no graceful close after the deadline."""

    class Bounded(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Connection that is terminated at once after the deadline."""

        async def close(self, *, timeout: float | None = None) -> None:
            if seconds_left() > 0:
                await super().close(timeout=timeout)
            else:
                self.terminate()

    return partial(driver.connect, connection_class=Bounded)
