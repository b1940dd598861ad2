"""Async engines whose connections respect the deadline of the current call."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import greenlet_spawn

from eventhub_checkpoints.stores.connections import Secret, password_of
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

Engine = AsyncEngine
Connection = AsyncConnection
VARIANT = "async"
IDENTITY = "azure.identity.aio"


def make_engine(url: URL, dialect: Dialect, secret: Secret | None, **options: Any) -> AsyncEngine:
    """Return an engine that gets the secret at each connect."""
    engine = create_async_engine(url, poolclass=AsyncAdaptedQueuePool, **options)
    if open_connection := dialect.async_connect(engine.dialect.dbapi):
        creator = with_secret(open_connection, secret)

        @event.listens_for(engine.sync_engine, "do_connect")
        def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
            options["async_creator_fn"] = creator

    event.listen(engine.sync_engine, "connect", dialect.prepare_connection)
    return engine


def core_engine(engine: AsyncEngine) -> Any:
    """Return the sync engine, which has the events and the pool."""
    return engine.sync_engine


async def close_idle(pool: Any) -> None:
    """Close the connections of a pool that no call uses; the pool may be of another event loop."""
    await greenlet_spawn(pool.dispose)


async def driver_of(connection: AsyncConnection) -> Any:
    """Return the driver's connection."""
    return (await connection.get_raw_connection()).driver_connection


def with_secret(
    open_connection: Callable[..., Awaitable[Any]], secret: Secret | None
) -> Callable[..., Awaitable[Any]]:
    """Return a connect function that gets the current password."""

    async def connect(*arguments: Any, **options: Any) -> Any:
        if secret is not None:
            password = secret()
            options["password"] = password_of(await password if isawaitable(password) else password)
        return await open_connection(*arguments, **options)

    return connect
