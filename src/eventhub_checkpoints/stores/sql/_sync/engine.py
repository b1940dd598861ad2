# Not derived: edit this file and its async twin together.
"""Engines whose connections respect the deadline of the current call."""

from collections.abc import Callable
from typing import Any

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.stores.connections import Secret, at_once
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
"""The first is the default if a URL names none."""


def make_engine(url: URL, secret: Secret | None, **options: Any) -> Engine:
    """Return an engine that gets the secret at each connect."""
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
    """Return the engine that has the events and the pool."""
    return engine


def bounded_psycopg(driver: Any) -> Callable[..., Any]:
    """Return psycopg's connect function with deadlines for an unresponsive server."""

    class Bounded(driver.Connection):  # type: ignore[misc]  # the driver is known only here
        """Connection that waits until the deadline of the current call."""

        @classmethod
        def _connect_gen(cls, *arguments: Any, **options: Any) -> Any:
            # If a version of psycopg does not call it, a connect takes at least 2 s.
            return cut_off(super()._connect_gen(*arguments, **options))

        def wait(self, operation: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return super().wait(cut_off(operation), interval=interval())
            except CutOffError as error:
                try:
                    # The request may be waiting for a lock, and would be carried out much later. An
                    # old libpq can cancel it only by waiting for an answer, perhaps for ever.
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
