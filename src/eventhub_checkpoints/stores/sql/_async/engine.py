"""Async engines whose connections respect the deadline of the current call."""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.stores.connections import Secret
from eventhub_checkpoints.stores.sql.timeouts import (
    CutOffError,
    cancel_seconds,
    connect_seconds,
    cut_off,
    interval,
)

try:
    from sqlalchemy import event
    from sqlalchemy.engine import URL
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
    from sqlalchemy.pool import AsyncAdaptedQueuePool
except ImportError as error:
    raise MissingDriverError.of_extra("the SQL store", "sql") from error

__all__ = ["COLOUR", "DRIVERS", "IDENTITY", "Connection", "Engine", "core_engine", "make_engine"]

Engine = AsyncEngine
Connection = AsyncConnection
COLOUR = "async"
IDENTITY = "azure.identity.aio"
DRIVERS = {"sqlite": ("aiosqlite",), "postgresql": ("psycopg", "asyncpg")}
"""The first is the default if a URL names none."""


def make_engine(url: URL, secret: Secret | None, **options: Any) -> AsyncEngine:
    """Return an engine that gets the secret at each connect."""
    engine = create_async_engine(url, poolclass=AsyncAdaptedQueuePool, **options)
    if url.get_backend_name() == "postgresql":
        driver: Any = engine.dialect.dbapi
        is_psycopg = engine.dialect.driver == "psycopg"
        open_one = (
            bounded_psycopg(driver.psycopg) if is_psycopg else bounded_asyncpg(driver.asyncpg)
        )

        @event.listens_for(engine.sync_engine, "do_connect")
        def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
            options["async_creator_fn"] = with_secret(open_one, secret)

    return engine


def core_engine(engine: AsyncEngine) -> Any:
    """Return the sync engine, which has the events and the pool."""
    return engine.sync_engine


def with_secret(
    open_one: Callable[..., Awaitable[Any]], secret: Secret | None
) -> Callable[..., Awaitable[Any]]:
    """Return a connect function that gets the current password."""

    async def connect(*arguments: Any, **options: Any) -> Any:
        if secret is not None:
            password = secret()
            options["password"] = await password if isawaitable(password) else password
        return await open_one(*arguments, **options)

    return connect


def bounded_psycopg(driver: Any) -> Callable[..., Awaitable[Any]]:
    """Return psycopg's connect function with deadlines for an unresponsive server.

    Cancelling the task is not enough: psycopg then asks the unresponsive server to cancel the
    request, and waits for that.
    """

    class Bounded(driver.AsyncConnection):  # type: ignore[misc]  # the driver is known only here
        """Connection that waits until the deadline of the current call."""

        async def wait(self, operation: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return await super().wait(cut_off(operation), interval=interval())
            except CutOffError as error:
                try:
                    # The request may be waiting for a lock, and would be carried out much later.
                    if (seconds := cancel_seconds()) is not None:
                        await self.cancel_safe(timeout=seconds)
                except driver.Error:
                    pass
                finally:
                    self.pgconn.finish()
                raise driver.OperationalError(str(error)) from None
            except CancelledError:
                # The next request must not receive the response to this one.
                self.pgconn.finish()
                raise

    async def connect(*arguments: Any, **options: Any) -> Any:
        seconds = connect_seconds(options.get("connect_timeout"))
        return await Bounded.connect(*arguments, **{**options, "connect_timeout": seconds})

    return connect


def bounded_asyncpg(driver: Any) -> Callable[..., Awaitable[Any]]:
    """Return asyncpg's connect function, with no graceful close after the deadline."""

    class Bounded(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Connection that is terminated at once after the deadline."""

        async def close(self, *, timeout: float | None = None) -> None:
            if seconds_left() > 0:
                await super().close(timeout=timeout)
            else:
                self.terminate()

    return partial(driver.connect, connection_class=Bounded)
