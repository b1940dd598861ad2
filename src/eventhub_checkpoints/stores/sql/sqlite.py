"""SQLite: connections to a file and its lock, statements, and result codes."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

from sqlalchemy.engine import URL

from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.paths import exists, is_folder
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
    WAYS,
    Dialect,
    Meaning,
    first_line,
    lock_seconds,
)
from eventhub_checkpoints.stores.sql.statements import renew_row
from eventhub_checkpoints.stores.sql.tables import Tables

OPTIONS = (
    *("uri", "timeout", "isolation_level", "detect_types"),
    *("check_same_thread", "cached_statements"),
)
"""Source: SQLAlchemy 2.0, `pysqlite.py`, `create_connect_args`."""
FILE_URI_OPTIONS = ("cache", "immutable", "mode", "nolock", "psow", "vfs")
"""Source: SQLite, "Uniform Resource Identifiers", section 3.3."""
NO_FILE = f"the file does not exist: check its name, or create it with {WAYS}"
CODES: dict[str, Meaning] = {
    "SQLITE_BUSY": (StoreUnavailableError, "another program holds the file's lock"),
    "SQLITE_LOCKED": (StoreUnavailableError, "another connection holds the table's lock"),
    "SQLITE_FULL": (StoreError, "the disk is full; nothing was changed"),
    "SQLITE_IOERR": (StoreError, "the disk failed or is full; nothing was changed"),
    "SQLITE_READONLY": (StoreAccessError, "the file or its folder may not be written"),
    "SQLITE_PERM": (StoreAccessError, "the file may not be read"),
    "SQLITE_AUTH": (StoreAccessError, "the file may not be used"),
    "SQLITE_CANTOPEN": (
        StoreNotReadyError,
        "the file cannot be opened; does its folder exist, and may it be written?",
    ),
    "SQLITE_NOTADB": (StoreError, "the file is not an SQLite database"),
    "SQLITE_CORRUPT": (StoreError, "the file is damaged; restore it, or begin with a new one"),
}
"""By the result code, or the longest prefix of it. Source: SQLite, "Result and Error Codes"."""


class LettingGo(sqlite3.Connection):
    """Connection that releases the file's locks when it is closed.

    While one of its statements is unfinished, SQLite only marks a closed connection as such
    (`sqlite3_close_v2`), and keeps its transaction and its lock. A cancelled call leaves such
    statements in the frames of its traceback, until the garbage collector runs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Create a cursor, which is closed with the connection."""
        cursor = super().cursor(*args, **kwargs)
        self._cursors.add(cursor)
        return cursor

    def close(self) -> None:
        """Finish every statement, roll back what was not committed, and close."""
        for cursor in list(self._cursors):
            cursor.close()
        if self.in_transaction:
            self.rollback()
        super().close()


class Sqlite(Dialect):
    """A file on this machine."""

    name = "sqlite"
    drivers: ClassVar = {"sync": ("pysqlite",), "async": ("aiosqlite",)}
    is_server = False
    # Several connections would poll for the file's only lock; in the pool, calls wait in a queue.
    pool_size = 1
    connect_args: ClassVar = {"factory": LettingGo}
    # A batch of claims is a transaction that is begun explicitly.
    skips_rollback = False
    level = "SERIALIZABLE"
    text, time = "TEXT", "REAL"
    clock = "((julianday('now') - 2440587.5) * 86400.0)"
    # The clock counts milliseconds; several rewinds may be written in one.
    tie_breaker = "rowid"
    row_lock = ""
    # A transaction that reads first may fail at once when it writes.
    hold_off = "UPDATE {0.checkpoint} SET version = version WHERE false"
    batch_savepoint = True
    # Not BEGIN, which fails inside a transaction that the caller's engine has begun.
    transaction = (
        "SAVEPOINT history",
        ("RELEASE history",),
        ("ROLLBACK TO history", "RELEASE history"),
    )

    def options(self, driver: str, query: Mapping[str, Any]) -> Sequence[str]:
        return (*OPTIONS, *(FILE_URI_OPTIONS if "uri" in query else ()))

    def check_url(self, url: URL) -> None:
        """Refuse an in-memory database: each connection would have its own rows."""
        if not url.database or ":memory:" in url.database or url.query.get("mode") == "memory":
            raise ConfigurationError(
                "an SQLite URL must name a file, sqlite:///FILE; to keep rows in memory, use the "
                "URL memory:"
            )

    def require_database(self, url: URL, shown: str) -> None:
        file = Path(str(url.database))
        # If the folder is missing too, SQLite creates nothing, and reports that.
        if "uri" not in url.query and is_folder(file.parent) and not exists(file):
            raise StoreNotReadyError(f"{shown}: {NO_FILE}")

    def prepare_connection(self, connection: Any, record: Any) -> None:
        """Make each commit durable against a power failure; some builds default to less."""
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    def lock_timeout(self, current: int | None, is_own: bool) -> tuple[int, str] | None:
        """Return milliseconds, rounded down to one digit: they rarely need a new setting."""
        digits = str(int(1000 * lock_seconds()))
        limit = int(digits[0].ljust(len(digits), "0"))
        return None if limit == current else (limit, f"PRAGMA busy_timeout = {limit}")

    def begin_migration(self, tables: Tables, is_own: bool) -> Sequence[str]:
        if not is_own:  # inside a transaction that the caller's engine began, BEGIN would fail
            return ("SAVEPOINT migration",)
        # Readers continue while another program writes; the file keeps this setting.
        return ("PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE")

    def has_versions(self, tables: Tables) -> str:
        name = tables.version.strip('"')
        return f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('{name}')"

    def renew_batch(self, tables: Tables) -> str:
        return renew_row(tables, self.clock)

    def create_batch(self, tables: Tables) -> str:
        return self.create_row(tables)

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        return rows

    def error(self, error: Exception, cause: BaseException, where: str) -> CheckpointStoreError:
        code = getattr(cause, "sqlite_errorname", None) or "no code"
        message = unmasked_message(cause)
        if message.startswith("no such table"):
            return StoreNotReadyError(f"{where}: {NO_TABLE} ({message})")
        if message.startswith(("no such column", "table ")) and "column" in message:
            return StoreNotReadyError(f"{where}: {OLD_TABLE} ({message})")
        prefixes = [prefix for prefix in CODES if code.startswith(prefix)]
        kind, meaning = CODES[max(prefixes, key=len)] if prefixes else (StoreError, "it failed")
        return kind(f"{where}: {meaning} ({code}: {first_line(message)})")
