# Not derived: edit this file and its async twin together.
"""Connections and authentication of a synchronous Redis client."""

from typing import Any

from redis import BlockingConnectionPool, Connection
from redis.connection import URL_QUERY_ARGUMENT_PARSERS
from redis.credentials import CredentialProvider
from redis.exceptions import ConnectionError as DriverConnectionError

from eventhub_checkpoints._shared.deadline import finite_seconds_left
from eventhub_checkpoints.stores.connections import Secret, at_once
from eventhub_checkpoints.stores.redis.url import check_options, login


class CredentialError(DriverConnectionError):
    """No secret for a new connection; a driver's error, so that the driver drops the connection."""


class Login(CredentialProvider):
    """Gets the secret at each connect, so that a token is always valid."""

    def __init__(self, username: str, source: Secret) -> None:
        self._username = username
        self._source = source

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return the arguments of `AUTH`."""
        try:
            return login(self._username, at_once(self._source()))
        except Exception as error:
            raise CredentialError("credential returned no secret for a new connection") from error


def bounded(kind: type[Connection]) -> type[Connection]:
    """Return the driver's connection class with the current call's deadline as its timeout."""

    class BoundedConnection(kind):  # type: ignore[misc, valid-type]  # TCP, TLS or Unix socket
        def connect(self) -> None:
            self.socket_timeout = self.socket_connect_timeout = socket_seconds()
            super().connect()

        def send_packed_command(self, command: Any, check_health: bool = True) -> None:
            # The driver sets the timeout when it connects; there is no public way to change it.
            if self._sock is not None:
                self._sock.settimeout(socket_seconds())
            super().send_packed_command(command, check_health)

    return BoundedConnection


def socket_seconds() -> float:
    """Return the time that is left as a socket timeout: 0 would mean non-blocking."""
    return max(finite_seconds_left(), 0.001)


def pooled(url: str, seconds: float, **options: Any) -> BlockingConnectionPool:
    """Return a pool whose commands end at their deadlines.

    Args:
        url: for redis-py.
        seconds: limit for waiting for a free connection.
        **options: for the pool and its connections.

    Raises:
        ValueError: the URL has an invalid option.
    """
    pool = BlockingConnectionPool.from_url(url, timeout=seconds, **options)
    check_options(url, URL_QUERY_ARGUMENT_PARSERS, pool)
    pool.connection_class = bounded(pool.connection_class)
    return pool


def is_unbounded(client: Any) -> bool:
    """Return whether a ready client waits for an unresponsive server for ever."""
    holder = getattr(client, "connection_pool", None) or getattr(client, "nodes_manager", None)
    return getattr(holder, "connection_kwargs", {}).get("socket_timeout") is None
