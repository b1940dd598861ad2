# Derived from _async/calls.py by tools/unasync.py; edit that file.
"""What is said on one connection."""

from collections.abc import Mapping, Sequence
from typing import Any

from eventhub_checkpoints.stores.sql._sync.engine import Connection
from eventhub_checkpoints.stores.sql.tables import Statement

PATIENCE = "eventhub_checkpoints.busy_timeout"


def write_ahead(connection: Connection) -> None:
    """Let readers go on while another program writes; the file keeps this setting."""
    connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def wait_for_locks(connection: Connection, milliseconds: int) -> None:
    """Let SQLite wait so long for another program's lock; told once, it remembers."""
    if connection.info.get(PATIENCE) != milliseconds:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")
        connection.info[PATIENCE] = milliseconds


def count(connection: Connection, statement: Statement, values: Mapping[str, Any]) -> int:
    """Say it; how many rows it wrote."""
    result = connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.rowcount


def all_rows(
    connection: Connection, statement: Statement, values: Mapping[str, Any]
) -> Sequence[Any]:
    """Ask it; the rows."""
    result = connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.all()
