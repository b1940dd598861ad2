"""Connections of any driver: credentials, and one client per process."""

import importlib
import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, Generic, TypeVar

from eventhub_checkpoints._shared.clouds import PUBLIC, login_options
from eventhub_checkpoints._shared.connection_errors import LINKS, linked
from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints._shared.secrets import quoted, repeats_secret
from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError

Client = TypeVar("Client")

DEFAULT_SCOPE = "/.default"
"""End of the scope that stands for all rights to an audience."""
AUDIENCE = re.compile(
    r"(?:(?:https|api)://[A-Za-z0-9][A-Za-z0-9._-]*(?::\d+)?(?:/[A-Za-z0-9._-]+)*"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})/?"
)
"""The URI of an application of Entra, or its id."""

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
    """
    if credential is None:
        return None
    if isinstance(credential, str):
        return lambda: credential
    if hasattr(credential, "get_token"):
        return partial(token_text, credential, token_scope)
    if callable(credential):
        return credential  # type: ignore[no-any-return]  # `password_of` checks its result
    raise ConfigurationError(
        f"credential is of type {type(credential).__name__}; expected a string, a callable that "
        "returns one, or a credential of azure-identity"
    )


def given_once(name: str, argument: Any, of_url: Any) -> Any:
    """Return a store's option from its argument or the URL's query; None if it is in neither.

    Raises:
        ConfigurationError: the two differ.
    """
    if argument is not None and of_url is not None and argument != of_url:
        raise ConfigurationError(
            f"{name} is {quoted(argument)}, and {quoted(of_url)} in the URL; give it once"
        )
    return of_url if argument is None else argument


def checked_audience(audience: Any, credential: Any, entra: bool) -> str | None:
    """Return the audience of the tokens that are passwords; None if the store's host decides.

    Args:
        audience: of the URL or the argument: a URI or the id of an application, which may end in
            `/.default` as a scope does.
        credential: of the store; only one with `get_token` is asked for a token.
        entra: whether the default credential of azure-identity is used.

    Raises:
        ConfigurationError: it is not an audience, or nothing requests a token.
    """
    if audience is None:
        return None
    text = audience.removesuffix(DEFAULT_SCOPE) if isinstance(audience, str) else ""
    if not AUDIENCE.fullmatch(text):
        raise ConfigurationError(
            f"audience is {quoted(audience)}; expected the URI of a service, such as "
            f"{PUBLIC.database_audience}, or the id of an application"
        )
    if not entra and not hasattr(credential, "get_token"):
        raise ConfigurationError(
            "audience is for tokens of Entra, and nothing requests one: pass entra=True, or a "
            "credential of azure-identity as credential="
        )
    return text.rstrip("/")


def scope_of(audience: str) -> str:
    """Return the scope that a token for an audience is requested with."""
    return f"{audience}{DEFAULT_SCOPE}"


def token_text(credential: Any, token_scope: str) -> str | Awaitable[str]:
    """Return the token's string, or an awaitable of it if the credential is asynchronous."""
    answer = credential.get_token(token_scope)

    def token_of(answer: object) -> str:
        if not hasattr(answer, "token"):
            raise ConfigurationError(
                f"get_token of a {kind_of(credential)} returned a {kind_of(answer)}; expected an "
                "azure.core.credentials.AccessToken"
            )
        return str(answer.token)

    async def awaited() -> str:
        return token_of(await answer)

    return awaited() if isawaitable(answer) else token_of(answer)


def password_of(secret: object) -> str:
    """Return the result of a credential's callable.

    Raises:
        ConfigurationError: it is not a string. Only its type is shown.
    """
    if not isinstance(secret, str):
        raise ConfigurationError(f"credential returned a {kind_of(secret)}; expected a string")
    return secret


def at_once(secret: Any) -> str:
    """Return a secret that needs no `await`.

    Raises:
        ConfigurationError: the secret must be awaited, or is not a string.
    """
    if not isawaitable(secret):
        return password_of(secret)
    if iscoroutine(secret):
        secret.close()  # avoids the warning that it was never awaited
    raise ConfigurationError(
        "credential returns an awaitable; a synchronous store takes one of azure.identity, "
        "not of azure.identity.aio"
    )


def default_credential(module: str, host: str, otherwise: str) -> Any:
    """Return azure-identity's default credential, of its sync or async module.

    Args:
        module: `azure.identity` or `azure.identity.aio`.
        host: the server, in whose cloud it logs in.
        otherwise: the whole message if that package is not installed; it lists alternatives.

    Raises:
        ConfigurationError: azure-identity is not installed.
    """
    try:
        return importlib.import_module(module).DefaultAzureCredential(**login_options(host))
    except ImportError as error:
        raise ConfigurationError(otherwise) from error


class PerProcessClient(Generic[Client]):
    """One client for each process and event loop.

    Args:
        make: creates the client; called again in a forked child, which must not use the parent's
            connections, and in another event loop.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._inherited: list[Client] = []
        self._begin()

    def reset(self) -> None:
        """Create a new client, and keep a reference to one inherited from the parent process.

        If a forked child deleted the inherited client, its connections would be unregistered from
        the epoll instance that child and parent share.
        """
        if not self.is_of_this_process:
            self._inherited.append(self.now)
        self._begin()

    @property
    def is_of_this_process(self) -> bool:
        """Return whether the client was created in this process, and not before a fork."""
        return self._process_id == os.getpid()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self.now = self._make()


def shows_secret(error: BaseException) -> bool:
    """Return whether the error or one of its causes holds a secret and must not be chained."""
    chain = linked(error, (*LINKS, "__context__"))
    return any(repeats_secret(unmasked_message(link)) for link in chain)
