"""Secrets as a store is given them: a text, a callable, or a credential of azure-identity."""

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
"""Gives the password for one connection that is about to be made; a store of the async colour
takes one that gives an awaitable, too. A token that is short-lived is therefore always fresh."""


def secret_source(credential: Any, token_scope: str) -> Secret | None:
    """What gives the password at each connect; None where there is no credential.

    Args:
        credential: a text, a callable without arguments, or anything with `get_token`.
        token_scope: what a token is asked for.

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
        return credential  # type: ignore[no-any-return]  # whatever it gives is the driver's
    raise ConfigurationError(
        f"credential is of type {type(credential).__name__}; expected a text, a callable that "
        "gives one, or a credential of azure-identity"
    )


def token_text(credential: Any, token_scope: str) -> str | Awaitable[str]:
    """The token's text; awaitable where the credential is of the async colour."""
    answer = credential.get_token(token_scope)
    return awaited_text(answer) if isawaitable(answer) else str(answer.token)


async def awaited_text(answer: Awaitable[Any]) -> str:
    """The text of a token that is on its way."""
    return str((await answer).token)


def at_once(secret: Any) -> Any:
    """A secret that is there already.

    Raises:
        ConfigurationError: it would have to be awaited.
    """
    if not isawaitable(secret):
        return secret
    if iscoroutine(secret):
        secret.close()  # it would warn that nobody waited for it
    raise ConfigurationError(
        "credential gives an awaitable; a synchronous store takes one of azure.identity, "
        "not of azure.identity.aio"
    )


def default_credential(module: str, otherwise: str) -> Any:
    """Azure Identity's default credential, of its sync or async module.

    Args:
        module: `azure.identity` or `azure.identity.aio`.
        otherwise: the whole message where that package is not installed; it lists other ways.

    Raises:
        ConfigurationError: see `otherwise`.
    """
    try:
        return importlib.import_module(module).DefaultAzureCredential()
    except ImportError as error:
        raise ConfigurationError(otherwise) from error
