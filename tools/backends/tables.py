"""Places of the SQL backends, read and written bypassing the store."""

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, NullPool, create_engine, text

from backends.base import Fields, Kind, Place
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.record_format import decimal_int64
from eventhub_checkpoints.stores.sql.statements import row_values
from eventhub_checkpoints.stores.sql.tables import Tables

COLUMNS = {
    "ownership": {"ownerid": "owner_id"},
    "checkpoint": {"offset": '"offset"', "sequencenumber": "sequence_number"},
}


class TablesPlace(Place):
    """Tables with a common prefix."""

    no_time = "'none'"
    """Value of the time column in a row without a time."""

    def __init__(self, url: str, engine_url: str, tables: Tables) -> None:
        self.url = url
        self.tables = tables
        self.engine: Engine = create_engine(engine_url, poolclass=NullPool)

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Any:
        """Execute a statement in its own transaction; return the rows, if there are any."""
        with self.engine.begin() as connection:
            result = connection.execute(text(statement), values or {})
            return result.all() if result.returns_rows else []

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        key = row_values(scope, partition_id)
        same = " AND ".join(f"{name} = :{name}" for name in key)
        self.execute(f"DELETE FROM {self.tables.quoted(kind)} WHERE {same}", key)
        if fields is None:
            return
        is_none = "hdi_isfolder" in fields and kind == "ownership"
        if is_none:
            self.allow_no_time(self.tables.quoted(kind))
        row = key | self._row(kind, fields)
        names = [COLUMNS[kind].get(name, name) for name in row]
        self.execute(
            f"INSERT INTO {self.tables.quoted(kind)} ({', '.join(names)}, last_modified_time) "
            f"VALUES ({', '.join(f':{name}' for name in row)}, {self.no_time if is_none else 0})",
            row,
        )

    def allow_no_time(self, table: str) -> None:
        """Prepare a table for a row without a time."""

    def _row(self, kind: Kind, fields: Fields) -> dict[str, Any]:
        """Return the columns for a foreign writer's fields, without fields that have no column."""
        given = {key.lower().replace("_", ""): value for key, value in fields.items()}
        if kind == "ownership":
            return {"ownerid": given.get("ownerid") or "", "etag": uuid.uuid4().hex}
        number = decimal_int64(given.get("sequencenumber") or "")
        return {
            "offset": given.get("offset"),
            "sequencenumber": number,
            "version": uuid.uuid4().hex,
            "writer": "a stranger",
        }

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        names = COLUMNS[kind]
        found = self.execute(
            f"SELECT partition_id, {', '.join(names.values())} FROM {self.tables.quoted(kind)}"
        )
        return {
            row[0]: {name: str(value) for name, value in zip(names, row[1:], strict=True)}
            for row in found
        }

    def vanish(self) -> None:
        for kind in ("ownership", "checkpoint", "history", "version"):
            self.execute(f"DROP TABLE IF EXISTS {self.tables.quoted(kind)}")

    def drop(self) -> None:
        self.vanish()
        self.engine.dispose()
