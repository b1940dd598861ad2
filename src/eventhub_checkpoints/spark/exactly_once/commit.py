"""One transaction of the SQL store: the positions of a batch, and its results."""

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
"""Enough, as the rows of the positions are locked; on SQLite it is the only one there is."""
SQL_STORE = "eventhub_checkpoints.sql:SqlCheckpointStore"


def open_sql_store(target: Any) -> "SqlCheckpointStore":
    """The store of a URL or an engine, or the one that is given; tables are created at first use.

    Raises:
        ConfigurationError: it is no store of a SQL database.
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
    """Do some work in one transaction, and commit it; on an error it is rolled back."""

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
"""Errors of SQLAlchemy that another attempt may not meet, such as a connection that broke."""


def commit(store: "SqlCheckpointStore", scope: "Scope", plan: "Plan", write: "Write") -> None:
    """Write positions and results, and commit; on an error neither is there.

    The positions come first: a batch that was overtaken is known before its results are written.

    Raises:
        StoreUnavailableError: another query has moved the positions since the plan was made, or
            the database did not answer; trying again may help.
        ConfigurationError: `write` has ended the transaction.
    """

    def work(connection: "Connection") -> None:
        # Locks in one order, whoever comes; what is stored is compared by the writes.
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
    """Have the results written, if there are any.

    Raises:
        ConfigurationError: `write` has ended the transaction.
    """
    # SQLAlchemy takes an empty list of rows for one row of defaults.
    if len(results):
        write(connection, results.begin(connection))
        if not connection.in_transaction():
            raise ConfigurationError("write has ended the transaction; it must leave it open")
        results.end(connection)


def may_pass(store: "SqlCheckpointStore", error: Exception) -> bool:
    """Whether to repeat the transaction may help; its outcome being unknown does no harm."""
    if type(error).__name__ in PASSING:
        error = store.database.map_error(error) or error
    return isinstance(error, StoreUnavailableError)
