"""What is said on one connection."""

from collections.abc import Mapping, Sequence
from typing import Any

from eventhub_checkpoints.stores.sql._async.engine import Connection
from eventhub_checkpoints.stores.sql.tables import Statement

PATIENCE = "eventhub_checkpoints.busy_timeout"


async def write_ahead(connection: Connection) -> None:
    """Let readers go on while another program writes; the file keeps this setting."""
    await connection.exec_driver_sql("PRAGMA journal_mode = WAL")


async def wait_for_locks(connection: Connection, milliseconds: int) -> None:
    """Let SQLite wait so long for another program's lock; told once, it remembers."""
    if connection.info.get(PATIENCE) != milliseconds:
        await connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")
        connection.info[PATIENCE] = milliseconds


async def count(connection: Connection, statement: Statement, values: Mapping[str, Any]) -> int:
    """Say it; how many rows it wrote."""
    result = await connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.rowcount


async def all_rows(
    connection: Connection, statement: Statement, values: Mapping[str, Any]
) -> Sequence[Any]:
    """Ask it; the rows."""
    result = await connection.exec_driver_sql(statement.text, statement.filled(values))
    return result.all()
