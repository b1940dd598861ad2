"""What is of the other colour, told before it does harm."""

import inspect
from collections.abc import Callable
from typing import Any

from eventhub_checkpoints._core.settings import kind_of
from eventhub_checkpoints._secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

PREFETCH = 20
"""Events of one partition that a sync client asks for at a time, unless the user says otherwise.

The client stays with a partition until so many have arrived, or none for `socket_timeout`, before
it turns to the next: at 50 events a second 300 take 6 s, for each of the partitions.

Source: azure-eventhub 5.15.1, `_consumer.py`, `EventHubConsumer.receive`, and
`_pyamqp/_connection.py`, `Connection.listen`.
"""


def check_store(store: object) -> None:
    """Refuse what is no store for a sync client; nobody would wait for what it does.

    Raises:
        ConfigurationError: it is none.
    """
    # A store need not be of the client's class, which asks for no method.
    update = getattr(store, "update_checkpoint", None)
    if callable(update) and not inspect.iscoroutinefunction(update):
        return
    # Not what it is: a URL may hold a password.
    raise ConfigurationError(
        f"store is of type {kind_of(store)}; expected a checkpoint store for azure.eventhub, such "
        "as those of eventhub_checkpoints (those of eventhub_checkpoints.aio are for the other "
        "client)"
    )


HANDLERS = ("initialize", "process_events", "process_error", "close")


def check_handlers(processor: object) -> None:
    """Refuse a class whose methods nobody would wait for.

    Raises:
        ConfigurationError: one of them is async.
    """
    for name in HANDLERS:
        if inspect.iscoroutinefunction(getattr(processor, name, None)):
            raise _is_async(f"{name} of {quoted(processor)}", "plain methods")


def check_plain(name: str, function: object) -> None:
    """Refuse a function that nobody would wait for.

    Raises:
        ConfigurationError: it is async.
    """
    if inspect.iscoroutinefunction(function):
        raise _is_async(name)


def called(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of the user's gives.

    Raises:
        ConfigurationError: it is a coroutine function, which nobody would wait for.
    """
    result = function(*args)
    if inspect.iscoroutine(result):
        result.close()
        raise _is_async(getattr(function, "__qualname__", function))
    return result


def _is_async(name: object, expected: str = "a plain function") -> ConfigurationError:
    return ConfigurationError(
        f"{name} is async; expected {expected}, or the EventProcessor of eventhub_checkpoints.aio"
    )
