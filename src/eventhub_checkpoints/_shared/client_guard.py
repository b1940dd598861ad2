"""Errors and a guard for objects that meet the client of the other colour, sync or async."""

import sys
from collections.abc import Callable
from typing import Any

from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError

SYNC, AIO = "eventhub_checkpoints", "eventhub_checkpoints.aio"
SYNC_CLIENT, AIO_CLIENT = "azure.eventhub", "azure.eventhub.aio"


class ClientGuard:
    """A method of a store that the client of the other colour cannot get.

    That client would await a list, or iterate over a coroutine, and report only Python's
    `TypeError`. All other code gets the plain method: a sync store works inside a running event
    loop, as in a notebook, and an async method stays a coroutine function.

    Args:
        method: what all others get.
        other_client: the package of the client that is refused.

    Source: azure-eventhub 5.15.1, `_eventprocessor/ownership_manager.py` and its aio twin: the
    client looks `list_ownership`, or with `partition_id=` `list_checkpoints`, up on its store
    before anything else of it.
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
    """The error of an object that meets a client of the other colour."""
    kind, package = ("synchronous", AIO) if client == AIO_CLIENT else ("asynchronous", SYNC)
    or_open = f", or open_store of {package}" if hasattr(value, "from_url") else ""
    return ConfigurationError(
        f"{type(value).__name__} is {kind}, and the client is that of {client}: use "
        f"`{twin_import(value)}`{or_open}"
    )


def no_store(value: object, client: str) -> ConfigurationError:
    """Return the error of what is given in the place of a store.

    Args:
        value: it.
        client: whose stores were expected, and where they are.
    """
    # Not what it is: a URL may hold a password.
    hint = "; open_store makes one of a URL" if isinstance(value, str) else ""
    return ConfigurationError(
        f"store is of type {kind_of(value)}; expected a checkpoint store for {client}{hint}"
    )


def twin_import(value: object) -> str:
    """The import of an object's class, or of the base class that is ours, in the other colour."""
    kind = next(one for one in type(value).__mro__ if one.__module__.startswith(f"{SYNC}."))
    module, name = kind.__module__, getattr(kind, "twin", "") or kind.__name__
    mine, other = (AIO, SYNC) if f"{module}.".startswith(f"{AIO}.") else (SYNC, AIO)
    if not hasattr(sys.modules[mine], name):  # the roots of both colours have the same names
        other += module.removeprefix(mine)
    return f"from {other} import {name}"
