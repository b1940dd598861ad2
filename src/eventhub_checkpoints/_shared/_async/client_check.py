"""Checks that async objects meet async clients and stores; calls functions of either colour."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast

from azure.eventhub import PartitionContext as SyncPartitionContext
from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared.client_guard import (
    SYNC_CLIENT,
    ClientGuard,
    no_store,
    twin_import,
    wrong_client,
)
from eventhub_checkpoints._shared.settings import name_of
from eventhub_checkpoints.errors import ConfigurationError

PREFETCH = 300
"""Events of one partition that an aio client asks for at a time, as it does by itself."""

Method = TypeVar("Method", bound=Callable[..., Any])


def own_client_only(method: Method) -> Method:
    """Refuse a client of `azure.eventhub`, the synchronous one, where it first uses the store."""
    return cast("Method", ClientGuard(method, SYNC_CLIENT))


class ContextGuard:
    """Refuse `with`, which Python would with a `TypeError` that names no way out.

    Attributes:
        twin: the name to import for the other colour, where it is not that of the class.
    """

    __slots__ = ()
    twin: ClassVar[str] = ""

    if not TYPE_CHECKING:  # a type checker still reports that there is no such method

        def __enter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is asynchronous: use `async with`, or without asyncio "
                f"`{twin_import(self)}`"
            )

        def __exit__(self, *_: object) -> NoReturn:
            """Exist, because Python looks it up before it calls `__enter__`."""
            raise NotImplementedError


class IterationGuard(ContextGuard):
    """Refuse `for`, too."""

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is asynchronous: use `async for`, or without asyncio "
                f"`{twin_import(self)}`"
            )


def check_context(value: object, partition_context: object) -> None:
    """Refuse the partition context of a synchronous client.

    Raises:
        ConfigurationError: it is one.
    """
    if isinstance(partition_context, SyncPartitionContext):
        raise wrong_client(value, SYNC_CLIENT)


def check_store(store: object) -> None:
    """Refuse what is no store for an aio client; what it answers would be lost.

    Raises:
        ConfigurationError: it is none.
    """
    update = getattr(store, "update_checkpoint", None)
    if isinstance(store, CheckpointStore) or inspect.iscoroutinefunction(update):
        return
    raise no_store(store, "azure.eventhub.aio, such as those of eventhub_checkpoints.aio")


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of the user's gives, whether it is a coroutine function or a plain one."""
    result = function(*args)
    return await result if inspect.isawaitable(result) else result


def check_plain(name: str, function: object) -> None:
    """Functions of either kind can be called here."""


SYNC_PROCESSOR = "eventhub_checkpoints.processor.PartitionProcessor"


def check_handlers(processor: object) -> None:
    """Refuse a class for the sync client; its own plain methods could be called here.

    Raises:
        ConfigurationError: what it calls is async here, and nobody would await that.
    """
    kind = processor if isinstance(processor, type) else type(processor)
    if SYNC_PROCESSOR in map(name_of, kind.__mro__):
        raise ConfigurationError(
            f"processor {kind.__qualname__} is a PartitionProcessor of eventhub_checkpoints; "
            "expected one of eventhub_checkpoints.aio, because its checkpoints.update_checkpoint() "
            "has to be awaited here"
        )
