"""Functions that users pass in: which kinds of them would do nothing when they are called.

A call of a generator function or of a coroutine function runs none of its code. Unless the result
is iterated or awaited, the call seems to succeed, and what it should have processed is lost.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from functools import partial
from inspect import (
    isasyncgenfunction,
    iscoroutine,
    iscoroutinefunction,
    isgeneratorfunction,
    signature,
)
from typing import Any

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError

HANDLERS: Mapping[str, tuple[str, ...]] = {
    "initialize": (),
    "process_events": ("a list of events",),
    "process_batch": ("a batch",),
    "process_error": ("an error",),
    "close": ("a reason",),
}
"""Methods of a processor of one partition, and their arguments."""
UNUSED: dict[type, str] = {
    Generator: "a generator",
    AsyncGenerator: "an async generator",
    Awaitable: "an awaitable",
    map: "a map",
    filter: "a filter",
}
"""Results whose code runs only where they are used, and what they are called in messages."""


class NothingRanError(ConfigurationError):
    """A call returned work instead of doing it, and nothing does that work."""


def is_generator_function(function: object) -> bool:
    """Return whether calling the function, or the object's `__call__`, only makes a generator."""
    return any(isgeneratorfunction(each) or isasyncgenfunction(each) for each in _called(function))


def is_coroutine_function(function: object) -> bool:
    """Return whether calling the function, or the object's `__call__`, only makes a coroutine."""
    return any(map(iscoroutinefunction, _called(function)))


def _called(function: object) -> tuple[object, object]:
    return function, getattr(type(function), "__call__", None)  # noqa: B004 - it may be async


def is_callback(value: object) -> bool:
    """Return whether the value is None or a callable that runs when it is called."""
    runs = not (is_generator_function(value) or is_coroutine_function(value))
    return value is None or (callable(value) and runs)


def require_runs(name: str, function: object, expected: str = "a function without yield") -> None:
    """Refuse a generator function.

    Raises:
        ConfigurationError: the function has a `yield`.
    """
    if is_generator_function(function):
        raise ConfigurationError(
            f"{name} has a yield, so calling it runs nothing; expected {expected}"
        )


def require_call(name: str, arguments: str, function: Any, *args: object, **kwargs: object) -> None:
    """Refuse a callable that cannot be called with these arguments."""
    try:
        signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise ConfigurationError(f"{name} cannot be called with {arguments}: {error}") from None
    except ValueError:  # Python does not know the signature
        return


def require_ran(function: Callable[..., Any], result: object) -> None:
    """Refuse the result of a user's function that nothing uses although it should be.

    A decorator can hide from `require_runs` what a function returns.

    Raises:
        NothingRanError: the result is a generator, a map, or an awaitable.
    """
    for kind, name in UNUSED.items():
        if isinstance(result, kind):
            if iscoroutine(result):
                result.close()  # avoids the warning that it was never awaited
            while isinstance(function, partial):  # its arguments may be long, and secrets
                function = function.func
            raise NothingRanError(
                f"{quoted(getattr(function, '__qualname__', function))} returned {name}, which "
                "nothing runs; expected a function whose work is done when it returns"
            )


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's plain function and return its result; raises as `require_ran`."""
    result = function(*args)
    require_ran(function, result)
    return result
