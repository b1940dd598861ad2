"""Names of the tables, and the migrations that create them: an append-only list of steps.

A step only adds: a table, or a column that may be omitted. Programs of an older release continue
while a newer one migrates their tables, so nothing that they use is ever removed. A step may be
repeated on MySQL, where each statement commits. `docs/reference/sql.md` describes the tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventhub_checkpoints.stores.sql.dialect import Dialect

NAMES = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
KEY_COLUMNS = (*NAMES, "partition_id")
KEY = ", ".join(KEY_COLUMNS)


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of the tables, and of a column that is a reserved word; all quoted."""

    namespace: str
    schema: str | None = None
    quote: str = '"'

    @property
    def ownership(self) -> str:
        """Name of the table of ownerships."""
        return self.quoted("ownership")

    @property
    def checkpoint(self) -> str:
        """Name of the table of checkpoints."""
        return self.quoted("checkpoint")

    @property
    def history(self) -> str:
        """Name of the table of earlier checkpoints."""
        return self.quoted("history")

    @property
    def history_index(self) -> str:
        """Name of the index of that table."""
        return f"{self.quote}{self.namespace}_history_key{self.quote}"

    @property
    def dead_letters(self) -> str:
        """Name of the table of dead letters, which is not the store's."""
        return self.quoted("dead_letters")

    @property
    def version(self) -> str:
        """Name of the table of applied migrations."""
        return self.quoted("version")

    @property
    def offset(self) -> str:
        """Name of the column."""
        return f"{self.quote}offset{self.quote}"

    def quoted(self, kind: str) -> str:
        """Return the quoted name of a table."""
        name = f"{self.quote}{self.namespace}_{kind}{self.quote}"
        return f"{self.quote}{self.schema}{self.quote}.{name}" if self.schema else name


Step = Callable[[Tables, "Dialect"], Sequence[str]]
"""Returns the statements of one migration, for tables of these names and a dialect."""


def first_tables(tables: Tables, dialect: "Dialect") -> Sequence[str]:
    """Return the statements that create the two tables of rows."""
    text, time, options = dialect.text, dialect.time, dialect.table_options
    key = ", ".join(f"{name} {dialect.key_types.get(name, text)} NOT NULL" for name in KEY_COLUMNS)
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.ownership} ({key}, owner_id {text} NOT NULL, "
        f"etag {text} NOT NULL, last_modified_time {time} NOT NULL, PRIMARY KEY ({KEY})){options}",
        f"CREATE TABLE IF NOT EXISTS {tables.checkpoint} ({key}, {tables.offset} {text}, "
        f"sequence_number BIGINT, version {text} NOT NULL, last_modified_time {time} NOT NULL, "
        f"writer {text} NOT NULL, PRIMARY KEY ({KEY})){options}",
    )


def history_table(tables: Tables, dialect: "Dialect") -> Sequence[str]:
    """Return the statements that create the table of earlier checkpoints, with its index."""
    text, time, options = dialect.text, dialect.time, dialect.table_options
    key = ", ".join(f"{name} {dialect.key_types.get(name, text)} NOT NULL" for name in KEY_COLUMNS)
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.history} (entry {dialect.entry} PRIMARY KEY, {key}, "
        f"time {time} NOT NULL, kind {text} NOT NULL, {tables.offset} {text}, "
        f"sequence_number BIGINT, version {text} NOT NULL, last_modified_time {time} NOT NULL, "
        f"writer {text} NOT NULL){options}",
        dialect.history_index(tables),
    )


MIGRATIONS: tuple[Step, ...] = (first_tables, history_table)
"""In the order of their numbers, which begin at 1. Never edit one; append."""
REQUIRED = 1
"""The store works with tables of this version; what newer migrations add is optional."""


def version_table(tables: Tables, dialect: "Dialect") -> str:
    """Return the statement that creates the table of versions."""
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.version} (version INTEGER PRIMARY KEY, "
        f"applied_time {dialect.time} NOT NULL, writer {dialect.text} NOT NULL)"
        f"{dialect.table_options}"
    )
