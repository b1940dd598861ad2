"""Wrong calls of public functions, answered by a sentence that says what was meant."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, TypeVar, cast

from eventhub_checkpoints._shared.settings import nearest
from eventhub_checkpoints.errors import ConfigurationError

Function = TypeVar("Function", bound=Callable[..., Any])


def with_checked_arguments(function: Function) -> Function:
    """Let a call with a wrong, missing or misplaced argument raise a `ConfigurationError`.

    Python's own `TypeError` names neither the argument that was meant nor, up to 3.11, the class.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # One that was raised in the function, and not by calling it, is another matter.
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise
            sentence = wrong_call(function, args, kwargs) or str(error)
        raise ConfigurationError(sentence)

    # The methods of an asynchronous store are told from those of others as coroutine functions.
    @wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return cast("Function", call_async if iscoroutinefunction(function) else call)


def wrong_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return what is wrong with the arguments of a call; None if they fit."""
    name = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__")
    parameters = signature(function).parameters
    is_method = next(iter(parameters), "") in ("self", "cls")
    kinds = [each.kind for each in parameters.values()]
    own = {
        key: each
        for key, each in list(parameters.items())[is_method:]
        if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    }
    if sentence := whole_scope(name, own, args):
        return sentence
    positional = [key for key, each in own.items() if each.kind is not Parameter.KEYWORD_ONLY]
    passed = [*positional[: len(args) - is_method], *kwargs]
    unknown = next((key for key in kwargs if key not in own), None)
    if unknown is not None and Parameter.VAR_KEYWORD not in kinds:
        meant = nearest(unknown, own)
        way_out = f"did you mean {meant}?" if meant else f"it has {', '.join(own)}"
        return f"{name} has no argument {unknown}; {way_out}"
    if len(args) - is_method > len(positional):
        by_name = ", ".join(f"{key}=" for key in own if key not in positional)
        if by_name:
            return f"{name} takes these arguments by name only: {by_name}"
        return f"{name} takes no more arguments than {', '.join(positional)}"
    missing = [
        key for key, each in own.items() if each.default is Parameter.empty and key not in passed
    ]
    return f"{name} needs {' and '.join(f'{key}=' for key in missing)}" if missing else None


def whole_scope(name: str, own: dict[str, Parameter], args: tuple[Any, ...]) -> str | None:
    """Return what is wrong if a scope was passed as one argument; None if there is none.

    Args:
        name: of the function.
        own: its parameters, of which the names of a scope are the first.
        args: of the call.
    """
    for names in (getattr(each, "_fields", ()) for each in args if isinstance(each, tuple)):
        if names and {*names} <= own.keys():
            others = [
                key
                for key, each in own.items()
                if each.default is Parameter.empty and key not in names
            ]
            call = f"{name.rpartition('.')[2]}({', '.join(['*scope', *others])})"
            return f"{name} takes the names of a scope one by one; call {call}"
    return None
