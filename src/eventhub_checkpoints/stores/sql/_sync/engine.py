# Not derived: edit this file and its async twin together.
"""Engines whose connections respect the deadline of the current call."""

from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import QueuePool

from eventhub_checkpoints.stores.connections import Secret, at_once
from eventhub_checkpoints.stores.sql.dialect import Dialect

__all__ = [
    "IDENTITY",
    "VARIANT",
    "Connection",
    "Engine",
    "close_idle",
    "core_engine",
    "driver_of",
    "make_engine",
]

VARIANT = "sync"
IDENTITY = "azure.identity"


def make_engine(url: URL, dialect: Dialect, secret: Secret | None, **options: Any) -> Engine:
    """Return an engine that gets the secret at each connect."""
    engine = create_engine(url, poolclass=QueuePool, **options)
    if open_connection := dialect.sync_connect(engine.dialect.dbapi):

        @event.listens_for(engine, "do_connect")
        def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
            if secret is not None:
                options["password"] = at_once(secret())
            return open_connection(*arguments, **options)

    event.listen(engine, "connect", dialect.prepare_connection)
    return engine


def core_engine(engine: Engine) -> Any:
    """Return the engine that has the events and the pool."""
    return engine


def close_idle(pool: Any) -> None:
    """Close the connections of a pool that no call uses."""
    pool.dispose()


def driver_of(connection: Connection) -> Any:
    """Return the driver's connection."""
    return connection.connection.driver_connection
