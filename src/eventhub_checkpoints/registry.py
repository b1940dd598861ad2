"""Stores by URL: a scheme names a factory, through entry points that third parties may add.

A distribution adds a scheme with an entry point of the group `eventhub_checkpoints.stores` (and
`eventhub_checkpoints.aio_stores`): its name is the scheme, its value a callable that takes
`(url, *, credential=None, **settings)` and returns a store.
"""

import importlib
import re
from collections.abc import Callable
from inspect import iscoroutine, iscoroutinefunction
from operator import attrgetter
from typing import Any, cast

from eventhub_checkpoints.base import BaseCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError

GROUP = "eventhub_checkpoints.stores"
METHODS = ("list_ownership", "claim_ownership", "list_checkpoints", "update_checkpoint")
"""What the client calls. Source: azure-eventhub 5.15.1, `CheckpointStore`."""


def open_store(url: str, *, credential: Any = None, **settings: Any) -> BaseCheckpointStore:
    """Open the store that a URL names; nothing is connected before the first use.

    Args:
        url: `memory:`, `memory:NAME`, `https://ACCOUNT.blob.core.windows.net/CONTAINER[?SAS]`, an
            emulator's `http://127.0.0.1:PORT/devstoreaccount1/CONTAINER`, any scheme that an
            installed package adds, or `package.module:factory` for a callable without arguments.
        credential: for the backend; see the store's `from_url`.
        **settings: passed to the store, see `BaseCheckpointStore`.

    Raises:
        ConfigurationError: no such scheme or factory, and the message lists what is known; or
            what it makes is no store for `azure.eventhub`.
        MissingDriverError: the backend's extra is not installed.
    """
    store = opened(GROUP, url, credential, settings)
    if is_async_store(store, url):
        raise ConfigurationError(
            f"{shown(url)} makes an async store; open it with eventhub_checkpoints.aio.open_store"
        )
    return cast("BaseCheckpointStore", store)


def opened(group: str, url: str, credential: Any, settings: dict[str, Any]) -> Any:
    """Find the factory for a URL among the entry points of a group, and call it."""
    # A fifth of what this package adds to the start of a program, and only needed for a URL.
    from importlib.metadata import entry_points

    if not isinstance(url, str):
        found_type = "None" if url is None else f"of type {type(url).__name__}"
        raise ConfigurationError(
            f"the store URL is {found_type}; expected a text such as "
            "https://ACCOUNT.blob.core.windows.net/CONTAINER; is the environment variable set?"
        )
    scheme, colon, rest = url.partition(":")
    found = {entry.name: entry for entry in entry_points(group=group)}
    if colon and scheme.lower() in found:
        factory = found[scheme.lower()].load()
        return factory(url, credential=credential, **settings)
    if all(part.isidentifier() for path in (scheme, rest) for part in path.split(".")):
        given = {} if credential is None else {"credential": credential}
        return _called(url, _factory(scheme, rest, found), given | settings)
    raise ConfigurationError(f"{shown(url)!r} names no store; {known(found)}")


def _factory(module: str, name: str, found: dict[str, Any]) -> Callable[..., Any]:
    try:
        factory = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"'{module}:{name}' names no store and cannot be imported ({error}); {known(found)}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(
            f"{module}:{name} is not callable; expected a factory of a checkpoint store"
        )
    return cast("Callable[..., Any]", factory)


def _called(url: str, factory: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        return factory(**given)
    except TypeError as error:
        # One from inside of the factory is the factory's own, and is left as it is.
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        arguments = f"with {', '.join(given)}" if given else "without arguments"
        raise ConfigurationError(f"{url} could not be called {arguments}: {error}") from error


def is_async_store(store: Any, url: str) -> bool:
    """Whether a store is for `azure.eventhub.aio`.

    Raises:
        ConfigurationError: it is no store at all; the message says what the URL made.
    """
    methods = [getattr(store, name, None) for name in METHODS]
    if isinstance(store, type) or not all(callable(method) for method in methods):
        if iscoroutine(store):
            store.close()  # it would warn that nobody waited for it
        raise ConfigurationError(
            f"{shown(url)} returned {type(store).__name__}; expected a checkpoint store"
        )
    return iscoroutinefunction(store.list_ownership)


def known(found: dict[str, Any]) -> str:
    """What a URL may begin with."""
    schemes = ", ".join(f"{name}:" for name in sorted(found))
    return f"known are {schemes} and package.module:factory"


def shown(url: str) -> str:
    """The URL without its query and user, which may hold a secret.

    A connection string in the place of a URL is cut off before its first value.
    """
    start = re.split("[?;=]", url, maxsplit=1)[0]
    scheme, slashes, rest = start.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}" if slashes else start
