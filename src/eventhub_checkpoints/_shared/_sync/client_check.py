# Not derived: edit this file and its async twin together.
"""Checks that sync objects are used with sync clients and stores."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar, cast

from eventhub_checkpoints._shared.callables import (
    HANDLERS,
    is_coroutine_function,
    require_runs,
    run,
)
from eventhub_checkpoints._shared.client import (
    AIO_CLIENT,
    ClientGuard,
    no_store,
    twin_import,
    wrong_client,
)
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

CLIENT_PREFETCH = 20
"""Events of one partition that a sync client prefetches by default.

The client stays with a partition until it has received this many events, or none for
`socket_timeout`, before it turns to the next: at 50 events a second, 300 events take 6 s for
each partition.

Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`, and
`_pyamqp/_connection.py`, `Connection.listen`.
"""


Method = TypeVar("Method", bound=Callable[..., Any])


def own_client_only(method: Method) -> Method:
    """Refuse a client of `azure.eventhub.aio` when it first uses the store."""
    return cast("Method", ClientGuard(method, AIO_CLIENT))


class ContextGuard:
    """Refuse `async with`; Python's own `TypeError` does not name an alternative.

    Attributes:
        twin: name of the asynchronous counterpart, if it differs from the name of the class.
    """

    __slots__ = ()
    twin: ClassVar[str] = ""

    if not TYPE_CHECKING:  # type checkers must still report that the method does not exist

        def __aenter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is synchronous: use `with`, or for asyncio "
                f"`{twin_import(self)}`"
            )

        def __aexit__(self, *_: object) -> NoReturn:
            """Exist because Python looks it up before it calls `__aenter__`."""
            raise NotImplementedError


class ClosingContext(ContextGuard):
    """Close the object at the end of a `with` block."""

    __slots__ = ()

    def close(self) -> None:
        """Close what the object has opened."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class IterationGuard(ContextGuard):
    """Refuse `async for` as well."""

    if not TYPE_CHECKING:

        def __aiter__(self) -> NoReturn:
            raise ConfigurationError(
                f"{type(self).__name__} is synchronous: use `for`, or for asyncio "
                f"`{twin_import(self)}`"
            )


def check_context(value: object, partition_context: object) -> None:
    """Refuse the partition context of a client of `azure.eventhub.aio`.

    Raises:
        ConfigurationError: the context belongs to an aio client.
    """
    # Compared by module name: importing the aio client would slow down every sync program.
    if type(partition_context).__module__.startswith(f"{AIO_CLIENT}."):
        raise wrong_client(value, AIO_CLIENT)


def reports_blocking(_name: str, function: Any, _report: Callable[[str], None]) -> Any:
    """Return the function: where there is no event loop, none stands still."""
    return function


def check_store(store: object) -> None:
    """Refuse an object that is not a store for a sync client; its coroutines would not be awaited.

    Raises:
        ConfigurationError: the object is not a sync store.
    """
    # A store need not derive from the client's class, which has no abstract methods.
    update = getattr(store, "update_checkpoint", None)
    is_store = callable(update) and not inspect.iscoroutinefunction(update)
    if is_store and not isinstance(store, type):
        return
    raise no_store(
        store,
        "azure.eventhub, such as those of eventhub_checkpoints (those of eventhub_checkpoints.aio "
        "are for the other client)",
    )


def check_handlers(processor: object) -> None:
    """Refuse a processor class with methods that would do nothing when they are called.

    Raises:
        ConfigurationError: a method is a coroutine function or a generator.
    """
    for name in HANDLERS:
        method = getattr(processor, name, None)
        check_callable(f"{name} of {quoted(processor)}", method, "plain methods")


def check_callable(
    name: str,
    function: object,
    expected: str = "a plain function",
    twin: str = "the EventProcessor of eventhub_checkpoints.aio",
) -> None:
    """Refuse a coroutine or generator function, which nothing would await or iterate.

    Args:
        name: of the argument.
        function: its value.
        expected: what is accepted.
        twin: what accepts a coroutine function.

    Raises:
        ConfigurationError: the function is async, or has a `yield`.
    """
    require_runs(name, function, expected)
    if is_coroutine_function(function):
        raise ConfigurationError(f"{name} is async; expected {expected}, or {twin}")


called = run
"""Call a user's function and return its result; a coroutine or generator is an error."""
