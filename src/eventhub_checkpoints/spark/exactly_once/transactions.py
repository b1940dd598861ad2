"""The SQL store as the Spark layer uses it, without needing its driver before it is used."""

from typing import TYPE_CHECKING, Any, TypeVar, cast

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.abilities import WritesInTransaction
from eventhub_checkpoints.errors import ConfigurationError
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
