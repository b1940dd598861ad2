# Not derived: edit this file and its async twin together.
"""Engines, whose connections end when the running call has no time left."""

from collections.abc import Callable
from typing import Any

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.stores.credentials import Secret, at_once
from eventhub_checkpoints.stores.sql.timeouts import (
    CutOffError,
    cancel_seconds,
    connect_seconds,
    cut_off,
    interval,
)

try:
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.pool import QueuePool
except ImportError as error:
    raise MissingDriverError.of_extra("the SQL store", "sql") from error

__all__ = ["COLOUR", "DRIVERS", "IDENTITY", "Connection", "Engine", "core_engine", "make_engine"]

COLOUR = "sync"
IDENTITY = "azure.identity"
DRIVERS = {"sqlite": ("pysqlite",), "postgresql": ("psycopg",)}
"""The first is taken where a URL names none."""


def make_engine(url: URL, secret: Secret | None, **options: Any) -> Engine:
    """An engine; the secret is asked for at each connect."""
    engine = create_engine(url, poolclass=QueuePool, **options)
    if url.get_backend_name() == "postgresql":
        open_one = bounded_psycopg(engine.dialect.dbapi)

        @event.listens_for(engine, "do_connect")
        def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
            if secret is not None:
                options["password"] = at_once(secret())
            return open_one(*arguments, **options)

    return engine


def core_engine(engine: Engine) -> Any:
    """The engine that has the events and the pool."""
    return engine


def bounded_psycopg(driver: Any) -> Callable[..., Any]:
    """What opens a connection of psycopg that is cut off when the server is silent."""

    class Bounded(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Waits as long as the running call has time."""

        @classmethod
        def _connect_gen(cls, *arguments: Any, **options: Any) -> Any:
            # Where a version of psycopg does not call it, a connect takes 2 s at least.
            return cut_off(super()._connect_gen(*arguments, **options))

        def wait(self, operation: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return super().wait(cut_off(operation), interval=interval())
            except CutOffError as error:
                try:
                    # The request may wait for a lock, and would be carried out long after. An old
                    # libpq cannot say so without waiting for an answer, perhaps for ever.
                    if driver.capabilities.has_cancel_safe() and (seconds := cancel_seconds()):
                        self.cancel_safe(timeout=seconds)
                except driver.Error:
                    pass
                finally:
                    self.pgconn.finish()
                raise driver.OperationalError(str(error)) from None

    def connect(*arguments: Any, **options: Any) -> Any:
        seconds = connect_seconds(options.get("connect_timeout"))
        try:
            return Bounded.connect(*arguments, **{**options, "connect_timeout": seconds})
        except CutOffError as error:
            raise driver.OperationalError(str(error)) from None

    return connect
