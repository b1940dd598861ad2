"""Large results: executors write them to a staging table, and the transaction moves them.

What an executor writes is in a transaction of its own, not in the driver's. So its rows go to a
table where nobody looks for results, under a key that no other attempt has, and the driver
moves them together with the positions. Whatever fails before leaves rows that are never moved.
"""

import uuid
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import ConfigurationError, StoreUnavailableError
from eventhub_checkpoints.spark.exactly_once.staging_columns import (
    MARKS,
    NAME,
    column_types,
    created,
    exists,
    insertion,
    quoted,
    spelled,
    stale,
)
from eventhub_checkpoints.spark.exactly_once.transactions import open_sql_store, transact
from eventhub_checkpoints.stores.sql.statements import CLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, Row

    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

STALE_AFTER = 24 * 3600.0
ROWS_AT_ONCE = 5000
"""That a task holds in memory."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that executors have written; its text is a subquery: `INSERT .. SELECT .. FROM {it}`.

    Attributes:
        table: the staging table, quoted.
        columns: the names of the results' columns.
        attempt: under which key all rows of this attempt are.
        tasks: the keys of the tasks that count; a task that was run twice has written twice.
        count: how many rows there are.
    """

    table: str
    columns: tuple[str, ...]
    attempt: str
    tasks: tuple[str, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def __str__(self) -> str:
        tasks = ", ".join(f"'{task}'" for task in self.tasks)
        return (
            f"(SELECT {quoted(self.columns)} FROM {self.table} WHERE staging_attempt = "
            f"'{self.attempt}' AND staging_task IN ({tasks})) AS staged"
        )

    def begin(self, connection: "Connection") -> "StagedRows":
        """This, once all its rows were found.

        Raises:
            StoreUnavailableError: some are gone, perhaps by a crash of the server.
        """
        found = connection.exec_driver_sql(f"SELECT count(*) FROM {self}").scalar()
        if found != self.count:
            raise StoreUnavailableError(
                f"{self.table} holds {found} of {self.count} rows that executors have written"
            )
        return self

    def end(self, connection: "Connection") -> None:
        """Remove the rows of this attempt, those of lost tasks too."""
        connection.exec_driver_sql(
            f"DELETE FROM {self.table} WHERE staging_attempt = '{self.attempt}'"
        )


class StagingTable:
    """A table through which executors hand over the rows of large batches.

    It is created where it is missing, beside the store's tables, with the columns of the first
    batch and five more; on PostgreSQL it is unlogged. With other columns give another name.

    Args:
        name: of the table, nobody else's.
        stale_after: seconds after which rows are removed that a crash has left. Those of the
            same query are removed at its next batch.

    Raises:
        ConfigurationError: the name is none.
    """

    def __init__(self, name: str, *, stale_after: float = STALE_AFTER) -> None:
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise ConfigurationError(f"staging table {name!r}: expected letters, digits and _")
        self.name = name
        self.stale_after = stale_after

    def take(
        self, frame: "DataFrame", store: "SqlCheckpointStore", url: str, batch_id: int
    ) -> StagedRows:
        """Have the executors write the rows of a frame.

        Raises:
            ConfigurationError: a column's type or name cannot be a table's, or this is Connect.
        """
        database, types = store.database, dict(frame.dtypes)
        schema, dialect = database.tables.schema, database.dialect
        table = f'"{schema}"."{self.name}"' if schema else f'"{self.name}"'
        query, attempt = query_id(frame), uuid.uuid4().hex
        columns, now = column_types(types, dialect), CLOCKS[dialect]

        def prepare(connection: "Connection") -> None:
            is_there = connection.exec_driver_sql(exists(table, dialect)).first()
            for statement in () if is_there else created(table, columns, dialect):
                connection.exec_driver_sql(statement)
            oldest = f"{now} - {self.stale_after}"
            connection.exec_driver_sql(stale(table, query, attempt, oldest))

        transact(store, prepare)
        insert = insertion(table, columns, MARKS[database.driver], now)
        stage = partial(stage_rows, url, insert, tuple(types.values()), (query, batch_id, attempt))
        tasks = frame.rdd.mapPartitions(stage).collect()
        count = sum(rows for _, rows in tasks)
        return StagedRows(table, tuple(columns), attempt, tuple(task for task, _ in tasks), count)


def query_id(frame: "DataFrame") -> str:
    """Spark's id of the streaming query that this batch is of; `""` outside of one.

    Raises:
        ConfigurationError: this is Spark Connect, which runs nothing of ours on executors.
    """
    context = getattr(frame.sparkSession, "sparkContext", None)
    if context is None:
        raise ConfigurationError(
            "staging= needs classic Spark; with Spark Connect aggregate in transform=, or give a "
            "higher max_rows="
        )
    found = context.getLocalProperty("sql.streaming.queryId")
    return str(uuid.UUID(found)) if found else ""


def stage_rows(
    url: str,
    insert: str,
    kinds: tuple[str, ...],
    key: tuple[str, int, str],
    rows: "Iterable[Row]",
) -> "Iterator[tuple[str, int]]":
    """One task, on an executor: write its rows in one transaction, and tell under which key."""
    following = iter(rows)
    chunk = list(islice(following, ROWS_AT_ONCE))
    if not chunk:
        return
    task, count = uuid.uuid4().hex, 0

    def write(connection: "Connection") -> None:
        nonlocal chunk, count
        plain = [spelled(kind, connection.dialect.name) for kind in kinds]
        while chunk:
            values = [
                (*(say(one) for say, one in zip(plain, row, strict=True)), *key, task)
                for row in chunk
            ]
            connection.exec_driver_sql(insert, values)
            count += len(chunk)
            chunk = list(islice(following, ROWS_AT_ONCE))

    with open_sql_store(url) as store:
        transact(store, write)
    yield task, count
