"""Transactions of the SQL store that write the positions and the results of a batch."""

from typing import TYPE_CHECKING, Any, TypeVar, cast

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.abilities import WritesInTransaction
from eventhub_checkpoints.errors import (
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.registry import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

T = TypeVar("T")

LEVELS = {"postgresql": "READ COMMITTED", "sqlite": "SERIALIZABLE"}
"""Isolation level by dialect. READ COMMITTED is enough because the position rows are locked;
SERIALIZABLE is the only level that SQLite has."""
SQL_STORE = "eventhub_checkpoints.sql:SqlCheckpointStore"


def open_sql_store(target: Any) -> "SqlCheckpointStore":
    """Return the store for a URL or an engine, or the store that is passed in.

    Tables are created on first use.

    Raises:
        ConfigurationError: the target is not a store of a SQL database.
    """
    if isinstance(target, WritesInTransaction):
        store: Any = target
    elif isinstance(target, str):
        store = open_store(target)
    else:
        store = open_store(SQL_STORE, url_or_engine=target)
    if not isinstance(store, WritesInTransaction) or not hasattr(store, "database"):
        raise ConfigurationError(
            f"{quoted(store)} cannot write inside of a transaction; expected sqlite:///FILE, "
            "postgresql://USER:PASSWORD@HOST/DATABASE, an engine of SQLAlchemy, or an "
            "SqlCheckpointStore"
        )
    found = cast("SqlCheckpointStore", store)
    found.creates = found.creates or found is not target
    return found


def transact(store: "SqlCheckpointStore", work: "Callable[[Connection], T]") -> T:
    """Run `work` in one transaction and commit it; roll back on an error."""

    def committed(connection: "Connection") -> T:
        answer = work(connection)
        connection.commit()
        return answer

    level = LEVELS[store.database.dialect]
    return store.database.transact(committed, isolation_level=level)


if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.records import Scope
    from eventhub_checkpoints.spark.exactly_once.fences import Plan
    from eventhub_checkpoints.spark.exactly_once.staging import Results
    from eventhub_checkpoints.sql import SqlCheckpointStore
    from eventhub_checkpoints.stores.sql._sync.engine import Connection

    Write = Callable[[Connection, Any], object]

PASSING = ("OperationalError", "InterfaceError", "TimeoutError")
"""Transient errors of SQLAlchemy, such as a broken connection; a retry may succeed."""


def commit(store: "SqlCheckpointStore", scope: "Scope", plan: "Plan", write: "Write") -> None:
    """Write positions and results, and commit; on an error neither is stored.

    The positions are written first, so that a batch that another query has overtaken is detected
    before its results are written.

    Raises:
        StoreUnavailableError: another query has moved the positions since the plan was made, or
            the database did not answer; a retry may succeed.
        ConfigurationError: `write` has ended the transaction.
    """

    def work(connection: "Connection") -> None:
        # Every query locks the rows in the same order, so two cannot deadlock. The writes below
        # compare the stored sequence numbers.
        store.read_in(connection, scope, [end.partition_id for end in plan.ends])
        for end in plan.ends:
            expected = plan.stored.get(end.partition_id)
            store.write_in(connection, end, expected_sequence_number=expected)
        write_results(connection, plan.results, write)

    try:
        transact(store, work)
    except StaleCheckpointError as stale:
        raise StoreUnavailableError(f"{scope}: another came first: {stale}") from stale


def write_results(connection: "Connection", results: "Results", write: "Write") -> None:
    """Pass the results to `write`, if there are any.

    Raises:
        ConfigurationError: `write` has ended the transaction.
    """
    # SQLAlchemy inserts one row of defaults for an empty list of rows.
    if len(results):
        write(connection, results.begin(connection))
        if not connection.in_transaction():
            raise ConfigurationError("write has ended the transaction; it must leave it open")
        results.end(connection)


def may_pass(store: "SqlCheckpointStore", error: Exception) -> bool:
    """Return whether the transaction may be retried; a retry is safe if the outcome is unknown."""
    if type(error).__name__ in PASSING:
        error = store.database.map_error(error) or error
    return isinstance(error, StoreUnavailableError)
