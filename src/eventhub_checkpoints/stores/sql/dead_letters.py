"""Statements for the table of dead letters, and the values of a row."""

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from eventhub_checkpoints.dead_letters.dead_letter import DeadLetter
from eventhub_checkpoints.stores.sql.tables import KEY_COLUMNS, Tables

if TYPE_CHECKING:
    from eventhub_checkpoints.stores.sql.dialect import Dialect
    from eventhub_checkpoints.stores.sql.statements import Write


class DeadLetterStatements:
    """Statements for the table of dead letters.

    Attributes:
        table: its quoted name.
        create: creates it. The columns before `letter` are for queries of people; `letter` has
            everything, as JSON.
        record: stores a dead letter; one of the same event that failed before is replaced.
        mark, delete: of a dead letter that has not failed again since.
    """

    def __init__(self, tables: Tables, dialect: "Dialect") -> None:
        self.table = tables.dead_letters
        kinds = {name: dialect.key_types.get(name, dialect.text) for name in KEY_COLUMNS}
        kinds |= {"sequence_number": "BIGINT", "time": dialect.time, "error_type": dialect.text}
        kinds |= {"error_message": dialect.text, "letter": dialect.long_text}
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in kinds.items())
        self.create = (
            f"CREATE TABLE IF NOT EXISTS {self.table} (id {dialect.entry} PRIMARY KEY, {columns}, "
            f"redriven_time {dialect.time}, redriven_to {dialect.text}){dialect.table_options}"
        )
        values = ", ".join(f":{name}" for name in kinds)
        insert = text(f"INSERT INTO {self.table} (id, {', '.join(kinds)}) VALUES (:id, {values})")
        changed = ("time", "error_type", "error_message", "letter")
        update = text(
            f"UPDATE {self.table} SET {', '.join(f'{name} = :{name}' for name in changed)}, "
            "redriven_time = NULL, redriven_to = NULL WHERE id = :id"
        )
        self.record: Write = (update, insert, update)
        self.dead_letters = text(f"SELECT letter, redriven_time, redriven_to FROM {self.table}")
        here = "WHERE id = :id AND time = :time"
        self.mark = text(
            f"UPDATE {self.table} SET redriven_time = :redriven_time, redriven_to = :redriven_to "
            f"{here}"
        )
        self.delete = text(f"DELETE FROM {self.table} {here}")


def values_of(dead_letter: DeadLetter) -> dict[str, Any]:
    """Return the parameters for a dead letter; PostgreSQL stores no NUL in a text."""
    return {
        "id": dead_letter.id,
        **dead_letter.scope.as_dict(),
        "partition_id": dead_letter.partition_id,
        "sequence_number": dead_letter.sequence_number,
        "time": dead_letter.time.timestamp(),
        "error_type": dead_letter.error_type,
        "error_message": dead_letter.error_message.replace("\0", "\\0"),
        "letter": dead_letter.to_json(),
    }
