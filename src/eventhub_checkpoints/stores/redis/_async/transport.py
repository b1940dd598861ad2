"""Connections and authentication of an asynchronous Redis client."""

from inspect import isawaitable
from typing import Any

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import URL_QUERY_ARGUMENT_PARSERS
from redis.credentials import CredentialProvider
from redis.exceptions import ConnectionError as DriverConnectionError

from eventhub_checkpoints.stores.connections import Secret, password_of
from eventhub_checkpoints.stores.redis.url import check_options, login


class CredentialError(DriverConnectionError):
    """No secret for a new connection; a driver's error, so that the driver drops the connection."""


class Login(CredentialProvider):
    """Gets the secret at each connect, so that a token is always valid."""

    def __init__(self, username: str, source: Secret) -> None:
        self._username = username
        self._source = source

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """Return the arguments of `AUTH`."""
        try:
            answer = self._source()
            answer = await answer if isawaitable(answer) else answer
            return login(self._username, password_of(answer))
        except Exception as error:
            raise CredentialError("credential returned no secret for a new connection") from error


def pooled(url: str, seconds: float, **options: Any) -> BlockingConnectionPool:
    """Return a pool whose commands have no timeout: the event loop cancels them.

    Args:
        url: for redis-py.
        seconds: limit for connecting, and for waiting for a free connection.
        **options: for the pool and its connections.

    Raises:
        ValueError: the URL has an invalid option.
    """
    pool = BlockingConnectionPool.from_url(
        url, timeout=seconds, socket_connect_timeout=seconds, socket_timeout=None, **options
    )
    check_options(url, URL_QUERY_ARGUMENT_PARSERS, pool)
    return pool


def is_unbounded(client: object) -> bool:
    """Return False: the event loop cancels the calls of a client that has no timeout."""
    return False
