"""Credentials of a store: a string, a callable, or a credential of azure-identity."""

import importlib
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError

POSTGRES_TOKENS = "https://ossrdbms-aad.database.windows.net/.default"
"""Source: Azure Database for PostgreSQL, "Use Microsoft Entra ID for authentication"."""
REDIS_TOKENS = "https://redis.azure.com/.default"
"""Source: Azure Cache for Redis, "Use Microsoft Entra ID for cache authentication"."""

PASSWORD_TWICE = "the URL has a password, and credential or entra gives another: keep one of them"

Secret = Callable[[], Any]
"""Returns the password for a new connection; for an async store, it may return an awaitable. It is
called at each connect, so that a short-lived token is always valid.
"""


def secret_source(credential: Any, token_scope: str) -> Secret | None:
    """Return a callable for the password at each connect; None if there is no credential.

    Args:
        credential: a string, a callable without arguments, or an object with `get_token`.
        token_scope: the scope of the tokens.

    Raises:
        ConfigurationError: it is none of these.
    """
    if credential is None:
        return None
    if isinstance(credential, str):
        return lambda: credential
    if hasattr(credential, "get_token"):
        return partial(token_text, credential, token_scope)
    if callable(credential):
        return credential  # type: ignore[no-any-return]  # its result goes to the driver unchecked
    raise ConfigurationError(
        f"credential is of type {type(credential).__name__}; expected a text, a callable that "
        "gives one, or a credential of azure-identity"
    )


def token_text(credential: Any, token_scope: str) -> str | Awaitable[str]:
    """Return the token's string, or an awaitable of it if the credential is asynchronous."""
    answer = credential.get_token(token_scope)
    return awaited_text(answer) if isawaitable(answer) else str(answer.token)


async def awaited_text(answer: Awaitable[Any]) -> str:
    """Await a token and return its string."""
    return str((await answer).token)


def at_once(secret: Any) -> Any:
    """Return a secret that needs no `await`.

    Raises:
        ConfigurationError: the secret is an awaitable.
    """
    if not isawaitable(secret):
        return secret
    if iscoroutine(secret):
        secret.close()  # avoids the warning that it was never awaited
    raise ConfigurationError(
        "credential gives an awaitable; a synchronous store takes one of azure.identity, "
        "not of azure.identity.aio"
    )


def default_credential(module: str, otherwise: str) -> Any:
    """Return azure-identity's default credential, of its sync or async module.

    Args:
        module: `azure.identity` or `azure.identity.aio`.
        otherwise: the whole message if that package is not installed; it lists alternatives.

    Raises:
        ConfigurationError: see `otherwise`.
    """
    try:
        return importlib.import_module(module).DefaultAzureCredential()
    except ImportError as error:
        raise ConfigurationError(otherwise) from error
