"""MySQL and MariaDB: statements, error codes, and deadlines for a server that does not answer."""

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy.engine import URL

from eventhub_checkpoints._shared.connection_errors import is_untrusted, why_unreached
from eventhub_checkpoints._shared.deadline import bound
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
    lock_seconds,
    refusal,
)
from eventhub_checkpoints.stores.sql.statements import (
    THIS_ROW,
    insert_checkpoint,
    insert_ownership,
    update_checkpoint,
)
from eventhub_checkpoints.stores.sql.tables import KEY, KEY_COLUMNS, Tables

DUPLICATES = {1050, 1060, 1061, 1062}
"""A table, column, index or row of that name or key exists."""
READ_ONLY = {1290, 1792, 1836}
CONNECTION = (StoreUnavailableError, "the connection broke")
LOGIN = (StoreAccessError, "the server refused the login; are user and password right?")
NO_RIGHT = (StoreAccessError, "the user lacks a right")
BUSY = (StoreUnavailableError, "the server has no free connection, or the user has too many")
STANDBY = "the server takes no writes: it is a replica, or read-only by its settings"
CODES: dict[int, Meaning] = {
    **dict.fromkeys((1045, 1698), LOGIN),
    **dict.fromkeys((1044, 1142, 1143, 1227), NO_RIGHT),
    **dict.fromkeys(READ_ONLY, (StoreUnavailableError, STANDBY)),
    **dict.fromkeys((1040, 1203, 1226), BUSY),
    **dict.fromkeys((1053, 1317, 1927), (StoreUnavailableError, "the server ended the request")),
    **dict.fromkeys((0, 1158, 1159, 1160, 1161, 2003, 2006, 2013, 2055, 4031), CONNECTION),
    **dict.fromkeys((1021, 1114), (StoreError, "the server's disk is full; nothing was changed")),
    1046: (ConfigurationError, "the URL names no database"),
    1049: (StoreNotReadyError, "the database does not exist; create it"),
    1054: (StoreNotReadyError, OLD_TABLE),
    1130: (StoreAccessError, "the server takes no connections from this host"),
    1146: (StoreNotReadyError, NO_TABLE),
    1205: (StoreUnavailableError, "a lock was not free in time"),
    1213: (StoreUnavailableError, "a deadlock with another transaction"),
    1273: (StoreError, "the server is too old; needed is MySQL 8.0.17 or MariaDB 10.6"),
    1406: (StoreError, "a name is longer than its column; nothing was changed"),
    2026: (StoreAccessError, "no encrypted connection as the URL wants it; is the server right?"),
}
"""Any other is final, and reported unchanged.

Source: MySQL 8.4 and MariaDB 11.4, `mysqld_error.h`, `errmsg.h`.
"""

PRECISION = 0.05
"""Seconds that an answer in several packets may take after the deadline of its call."""

OPTIONS = (
    *("charset", "connect_timeout", "init_command", "program_name", "unix_socket"),
    *("ssl", "ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_check_hostname"),
)
"""Options that both drivers take, and those of `tls_context`. Source: SQLAlchemy 2.0, `mysqldb.py`,
`create_connect_args`; `ssl` of a URL is a string.
"""

PROPOSED = {
    "fully_qualified_namespace": "VARCHAR(192)",
    "eventhub_name": "VARCHAR(256)",
    "consumer_group": "VARCHAR(192)",
    "partition_id": "VARCHAR(128)",
}
"""The longest that the key of an InnoDB table can be: 3072 bytes, 4 for each character."""
BATCH_TYPES = {**PROPOSED, "owner_id": "TEXT", "etag": "TEXT", "new_etag": "TEXT"}
PROPOSALS = (
    "JSON_TABLE(:rows, '$[*]' COLUMNS ("
    + ", ".join(f"{name} {kind} PATH '$.{name}'" for name, kind in BATCH_TYPES.items())
    + ")) AS proposed"
)
"""A batch of claims as rows, in the order of their key."""


class Mysql(Dialect):
    """MySQL 8.0.17 or newer, MariaDB 10.6 or newer.

    A conditional write is decided by the number of rows that match its condition. SQLAlchemy makes
    the server count these (`CLIENT_FOUND_ROWS`); it counts the same without, because every write
    changes its row.
    """

    name = "mysql"
    drivers: ClassVar = {"sync": ("pymysql",), "async": ("aiomysql",)}
    quote = "`"
    text, long_text, time = "TEXT", "LONGTEXT", "DOUBLE"
    key_types = PROPOSED
    entry = "VARCHAR(48)"
    minute_entry = "CONCAT(:partition_key, FLOOR({0} / 60))"
    # These collations distinguish case, accents and trailing spaces. MariaDB executes the first
    # comment only, and MySQL 8 the second; before 8.0.17, which has no such collation, it fails.
    table_options = (
        " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 "
        "/*M! COLLATE=utf8mb4_nopad_bin */ /*!80000 COLLATE=utf8mb4_0900_bin */"
    )
    # Independent of the session's time zone; the start of the statement.
    clock = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1e6)"
    # A row that exists is a duplicate, which is an error: INSERT IGNORE would hide others, too.
    unless_exists = ""
    unless_kept = "ON DUPLICATE KEY UPDATE {0.history}.entry = {0.history}.entry"
    current_row = "LOCK IN SHARE MODE"

    def options(self, driver: str, query: Mapping[str, Any]) -> Sequence[str]:
        return OPTIONS

    def check_url(self, url: URL) -> None:
        if not url.database:
            raise ConfigurationError(
                f"the store URL names no database; expected {self.service.form}"
            )

    def encrypted(self, url: URL) -> URL:
        is_encrypted = any(name.startswith("ssl") for name in url.query)
        return url if is_encrypted else url.update_query_dict({"ssl": "true"})

    def sync_connect(self, driver: Any) -> Callable[..., Any]:
        return bounded_pymysql(driver)

    def async_connect(self, driver: Any) -> Callable[..., Any]:
        return cancellable_aiomysql(driver.aiomysql, driver.pymysql)

    def prepare_connection(self, connection: Any, record: Any) -> None:
        """Lock no gaps between rows, and refuse values that are too long for their column."""
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
        cursor.close()

    def lock_timeout(self, current: int | None, is_own: bool) -> tuple[int, str] | None:
        """Return seconds, at least 1; a request must not be carried out long after its call.

        A limit is kept as long as it is less than what is left, and not much less, because
        setting another one takes a round trip.
        """
        limit = max(int(lock_seconds()), 1)
        if not is_own or (current is not None and limit / 8 <= current <= limit):
            return None
        return limit, f"SET SESSION innodb_lock_wait_timeout = {limit}, lock_wait_timeout = {limit}"

    def has_versions(self, tables: Tables) -> str:
        name = tables.version.strip("`")
        return (
            "SELECT 1 FROM information_schema.tables "
            f"WHERE table_schema = DATABASE() AND table_name = '{name}'"
        )

    def create_row(self, tables: Tables) -> str:
        return insert_ownership(tables, self.clock)

    def renew_batch(self, tables: Tables) -> str:
        """Return an UPDATE that locks the rows in the order of the batch, which is the key's."""
        same = " AND ".join(f"own.{name} = proposed.{name}" for name in (*KEY_COLUMNS, "etag"))
        return (
            f"UPDATE {PROPOSALS} STRAIGHT_JOIN {tables.ownership} AS own FORCE INDEX (PRIMARY) "
            f"ON {same} SET own.owner_id = proposed.owner_id, own.etag = proposed.new_etag, "
            f"own.last_modified_time = {self.clock}"
        )

    def create_batch(self, tables: Tables) -> str:
        """Return an INSERT whose row count is not exact, because existing rows count, too."""
        chosen = ", ".join(f"proposed.{name}" for name in (*KEY_COLUMNS, "owner_id", "new_etag"))
        return (
            f"INSERT INTO {tables.ownership} ({KEY}, owner_id, etag, last_modified_time) "
            f"SELECT {chosen}, {self.clock} FROM {PROPOSALS} "
            f"ON DUPLICATE KEY UPDATE etag = {tables.ownership}.etag"
        )

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        rows = sorted(rows, key=lambda row: [row[name] for name in KEY_COLUMNS])
        return {"rows": json.dumps(rows)}

    def create_checkpoint(self, tables: Tables) -> str:
        return insert_checkpoint(tables, self.clock)

    def force_checkpoint(self, tables: Tables, source: str = "") -> str:
        names = (tables.offset, "sequence_number", "version", "last_modified_time", "writer")
        return (
            f"{insert_checkpoint(tables, self.clock, source=source)} ON DUPLICATE KEY UPDATE "
            f"{', '.join(f'{name} = VALUES({name})' for name in names)}"
        )

    def forward_checkpoint(self, tables: Tables) -> Sequence[str]:
        """Return two statements, because the count of an upsert does not tell what it did."""
        return (
            f"{update_checkpoint(tables, self.clock)} WHERE {THIS_ROW} AND "
            "(sequence_number IS NULL OR sequence_number <= :sequence_number)",
            self.create_checkpoint(tables),
        )

    def history_index(self, tables: Tables) -> str:
        """Return an index without the time: the key columns have the maximum length of a key."""
        return f"CREATE INDEX {tables.history_index} ON {tables.history} ({KEY})"

    def error(self, error: Exception, cause: BaseException, where: str) -> CheckpointStoreError:
        code, message = code_of(cause), str(cause.args[-1] if cause.args else cause)
        statement = getattr(error, "statement", None) or ""
        kind, meaning = CODES.get(code, (StoreError, "it failed"))
        if isinstance(cause, OSError) or not isinstance(code, int):
            kind, meaning = CONNECTION  # such as a packet out of order
        if is_untrusted(error):
            kind, meaning = CODES[2026]
        elif kind is StoreUnavailableError:
            meaning = why_unreached(error) or meaning
        elif (kind, meaning) == NO_RIGHT and statement:
            meaning = refusal(statement)
        return kind(f"{where}: {meaning} ({code}: {first_line(message)})")

    def is_duplicate(self, error: BaseException) -> bool:
        return code_of(getattr(error, "orig", error)) in DUPLICATES

    def must_reconnect(self, error: BaseException) -> bool:
        return code_of(getattr(error, "orig", error)) in READ_ONLY


def code_of(error: BaseException | None) -> Any:
    """Return the code of a driver's error, its first argument."""
    return error.args[0] if error is not None and error.args else None


def tls_context(options: dict[str, Any]) -> ssl.SSLContext | None:
    """Return what `ssl=true` and the options `ssl_*` of a URL ask for; None for no encryption.

    The server's certificate is verified against `ssl_ca`, or the system's authorities.

    Raises:
        ConfigurationError: the value of `ssl` is unknown, or a file cannot be read.
    """
    choice = options.get("ssl")
    if not choice or choice == "false":
        return None
    if isinstance(choice, ssl.SSLContext):
        return choice
    if choice != "true" and not isinstance(choice, dict):
        raise ConfigurationError("the option ssl of the store URL must be true or false")
    settings = choice if isinstance(choice, dict) else {}
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ca"), capath=settings.get("capath")
        )
        if settings.get("cert"):
            context.load_cert_chain(settings["cert"], settings.get("key"))
    except OSError as error:
        raise ConfigurationError(
            f"a file of ssl_ca, ssl_cert or ssl_key cannot be used: {error}"
        ) from error
    context.check_hostname = settings.get("check_hostname", True)
    return context


def refuse_plain_text(connection: Any, driver: Any, wants_encryption: bool) -> None:
    """Refuse to send a password to a server without TLS; some versions of the drivers do so."""
    if wants_encryption and not connection.server_capabilities & driver.constants.CLIENT.SSL:
        raise driver.err.OperationalError(2026, "the server does not support TLS")


def bounded_pymysql(driver: Any) -> Callable[..., Any]:
    """Return PyMySQL's connect function with deadlines for an unresponsive server."""

    class Bounded(driver.connections.Connection):  # type: ignore[misc]  # known only here
        """Connection that waits until the deadline of the current call."""

        def _execute_command(self, command: Any, sql: Any) -> None:
            self._read_timeout = self._write_timeout = bound()
            super()._execute_command(command, sql)

        def _read_packet(self, *arguments: Any) -> Any:
            # A login and a result are several packets, and each would have all of the time again.
            # Only now and then: the driver then makes a system call, and a row is a packet.
            if (left := bound()) < self._read_timeout - PRECISION:
                self._read_timeout = left
            return super()._read_packet(*arguments)

        def _request_authentication(self) -> None:
            refuse_plain_text(self, driver, self.wants_encryption)
            super()._request_authentication()

    def connect(*arguments: Any, **options: Any) -> Any:
        context, left = tls_context(options), bound()
        options["connect_timeout"] = min(left, options.get("connect_timeout") or left)
        options |= {"read_timeout": left, "write_timeout": left, "ssl": context}
        connection = Bounded(*arguments, **options, defer_connect=True)
        connection.wants_encryption = context is not None
        connection.connect()
        return connection

    return connect


def cancellable_aiomysql(driver: Any, pymysql: Any) -> Callable[..., Any]:
    """Return aiomysql's connect function; a cancelled connect leaves no socket open."""

    class Cancellable(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Connection that is closed when its connect is cancelled; aiomysql does the rest."""

        async def _connect(self) -> None:
            try:
                await super()._connect()
            except BaseException:
                self.close()
                raise

        async def _request_authentication(self) -> None:
            refuse_plain_text(self, pymysql, self._ssl_context is not None)
            await super()._request_authentication()

    async def connect(*arguments: Any, **options: Any) -> Any:
        connection = Cancellable(*arguments, **{**options, "ssl": tls_context(options)})
        await connection._connect()
        return connection

    return connect
