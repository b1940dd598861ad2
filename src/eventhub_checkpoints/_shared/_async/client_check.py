"""Checks that async objects are used with async clients and stores."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar, cast

from azure.eventhub import PartitionContext as SyncPartitionContext
from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._shared.callables import (
    HANDLERS,
    UNUSED,
    is_coroutine_function,
    require_ran,
    require_runs,
)
from eventhub_checkpoints._shared.client import (
    SYNC_CLIENT,
    ClientGuard,
    no_store,
    twin_import,
    wrong_client,
)
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import name_of
from eventhub_checkpoints.errors import ConfigurationError

CLIENT_PREFETCH = 300
"""Events of one partition that an aio client prefetches; the client's own default."""

Method = TypeVar("Method", bound=Callable[..., Any])


def own_client_only(method: Method) -> Method:
    """Refuse a synchronous client (of `azure.eventhub`) when it first uses the store."""
    return cast("Method", ClientGuard(method, SYNC_CLIENT))


class ContextGuard:
    """Raise an error for `with` that names `async with`, unlike Python's `TypeError`.

    Attributes:
        twin: name of the synchronous counterpart, if it differs from the name of the class.
    """

    __slots__ = ()
    twin: ClassVar[str] = ""

    if not TYPE_CHECKING:  # type checkers must still report that the method does not exist

        def __enter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is asynchronous: use `async with`, or without asyncio "
                f"`{twin_import(self)}`"
            )

        def __exit__(self, *_: object) -> NoReturn:
            """Exist only because `with` looks up `__exit__` before it calls `__enter__`."""
            raise NotImplementedError


class ClosingContext(ContextGuard):
    """Close the object at the end of an `async with` block."""

    __slots__ = ()

    async def close(self) -> None:
        """Close what the object has opened."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


class IterationGuard(ContextGuard):
    """Refuse `for` as well."""

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is asynchronous: use `async for`, or without asyncio "
                f"`{twin_import(self)}`"
            )


def check_context(value: object, partition_context: object) -> None:
    """Refuse the partition context of a synchronous client.

    Raises:
        ConfigurationError: the context belongs to a synchronous client.
    """
    if isinstance(partition_context, SyncPartitionContext):
        raise wrong_client(value, SYNC_CLIENT)


def check_store(store: object) -> None:
    """Refuse an object that is not an asyncio store, because its results cannot be awaited.

    Raises:
        ConfigurationError: the object is not an async store.
    """
    update = getattr(store, "update_checkpoint", None)
    is_store = isinstance(store, CheckpointStore) or inspect.iscoroutinefunction(update)
    if is_store and not isinstance(store, type):
        return
    raise no_store(store, "azure.eventhub.aio, such as those of eventhub_checkpoints.aio")


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's function, plain or coroutine, and return its result.

    Raises:
        NothingRanError: it is a generator, whose code would never run.
    """
    result = function(*args)
    if inspect.isawaitable(result):
        result = await result
    require_ran(function, result)
    return result


def reports_blocking(name: str, function: Any, report: Callable[[str], None]) -> Any:
    """Return a user's function that reports when a call of it has blocked the event loop.

    A plain function that returns an awaitable, as a decorator makes them, does not block.

    Args:
        name: what the function is called in the report.
        function: the function, or anything that is no coroutine function.
        report: called with a sentence after each call that did not return an awaitable.
    """
    if is_coroutine_function(function):
        return function

    @wraps(function)
    def call(*args: Any) -> Any:
        result = function(*args)
        if not (inspect.isawaitable(result) or isinstance(result, tuple(UNUSED))):
            report(
                f"{name} is a plain function: while it runs, the event loop stands still, so no "
                "partition is processed or renewed. Make it `async def`, and await "
                "asyncio.to_thread(...) for what blocks in it, or without asyncio use the "
                "synchronous EventProcessor"
            )
        return result

    # For messages: an object that is called has no such name.
    call.__qualname__ = getattr(function, "__qualname__", None) or quoted(function)
    return call


def check_callable(name: str, function: object, *, twin: str = "") -> None:
    """Refuse a generator function, which nothing would iterate.

    Raises:
        ConfigurationError: the function has a `yield`.
    """
    require_runs(name, function)


SYNC_PROCESSOR = "eventhub_checkpoints.processor.PartitionProcessor"


def check_handlers(processor: object) -> None:
    """Refuse a processor class for the sync client, or with methods that would do nothing.

    Raises:
        ConfigurationError: the class is for the sync client. The checkpoint methods that it calls
            are coroutines here, and would never be awaited. Or one of its methods is a generator.
    """
    for name in HANDLERS:
        method = getattr(processor, name, None)
        require_runs(f"{name} of {quoted(processor)}", method, "plain or coroutine methods")
    kind = processor if isinstance(processor, type) else type(processor)
    if SYNC_PROCESSOR in map(name_of, kind.__mro__):
        raise ConfigurationError(
            f"processor {kind.__qualname__} is a PartitionProcessor of eventhub_checkpoints; "
            "expected one of eventhub_checkpoints.aio, because its checkpoints.update_checkpoint() "
            "has to be awaited here"
        )
