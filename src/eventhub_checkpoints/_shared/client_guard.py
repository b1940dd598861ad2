"""Guards against the use of sync objects with async clients, and the reverse."""

import sys
from collections.abc import Callable
from typing import Any

from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError

SYNC, AIO = "eventhub_checkpoints", "eventhub_checkpoints.aio"
SYNC_CLIENT, AIO_CLIENT = "azure.eventhub", "azure.eventhub.aio"


class ClientGuard:
    """Store method that a client of the wrong kind, sync or async, cannot look up.

    That client would await a list, or iterate over a coroutine, and report only Python's
    `TypeError`. All other code gets the plain method: a sync store works inside a running event
    loop, as in a notebook, and an async method stays a coroutine function.

    Args:
        method: the method that all other code gets.
        other_client: the package of the client that is refused.

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py` and its aio twin:
    `list_ownership`, or with `partition_id=` `list_checkpoints`, is the first attribute of its
    store that the client looks up.
    """

    def __init__(self, method: Callable[..., Any], other_client: str) -> None:
        self.__wrapped__ = method
        self._other_client = other_client

    def __get__(self, store: Any, owner: type | None = None) -> Any:
        module = sys._getframe(1).f_globals.get("__name__", "")
        if store is not None and module.startswith(f"{self._other_client}._eventprocessor."):
            raise wrong_client(store, self._other_client)
        return self.__wrapped__.__get__(store, owner)


def wrong_client(value: object, client: str) -> ConfigurationError:
    """Return the error for an object that is used with a client of the wrong kind."""
    kind, package = ("synchronous", AIO) if client == AIO_CLIENT else ("asynchronous", SYNC)
    or_open = f", or open_store of {package}" if hasattr(value, "from_url") else ""
    return ConfigurationError(
        f"{type(value).__name__} is {kind}, and the client is that of {client}: use "
        f"`{twin_import(value)}`{or_open}"
    )


def no_store(value: object, client: str) -> ConfigurationError:
    """Return the error for an object that is passed as a store but is not one."""
    # The value is not shown: a URL may hold a password.
    hint = "; open_store makes one of a URL" if isinstance(value, str) else ""
    return ConfigurationError(
        f"store is of type {kind_of(value)}; expected a checkpoint store for {client}{hint}"
    )


def twin_import(value: object) -> str:
    """Return the import of the class's counterpart, sync or async.

    For a class of another package, that of its base class in this package.
    """
    kind = next(one for one in type(value).__mro__ if one.__module__.startswith(f"{SYNC}."))
    module, name = kind.__module__, getattr(kind, "twin", "") or kind.__name__
    mine, other = (AIO, SYNC) if f"{module}.".startswith(f"{AIO}.") else (SYNC, AIO)
    if not hasattr(sys.modules[mine], name):  # both root packages export the same names
        other += module.removeprefix(mine)
    return f"from {other} import {name}"
