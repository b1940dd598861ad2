"""What a store class may redefine of its base class and of its abilities, and how."""

import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from eventhub_checkpoints.errors import ConfigurationError

COROUTINES = (
    "in a store of eventhub_checkpoints.aio.base, hooks that perform I/O are coroutine functions; "
    "in one of eventhub_checkpoints.base, none are"
)


def refuse_redefined(kind: type, hooks: type, owners: Sequence[type]) -> None:
    """Refuse a store class that redefines more than hooks and flags, or one of these wrongly.

    What the class inherits counts, too, for example from a mixin before its base class.

    Args:
        kind: the store class.
        hooks: the class of the hooks and flags.
        owners: the base class, and the declared abilities, whose abstract methods are hooks.

    Raises:
        ConfigurationError: the class has anything by another name of the owners, a flag that is
            not a bool, or a hook that could not be called as one.
    """
    redefinable = {
        name: value
        for name, value in vars(hooks).items()
        if isinstance(value, FunctionType | bool) and not name.startswith("__")
    }
    for owner in owners:
        for name, inherited in vars(owner).items():
            if getattr(inherited, "__isabstractmethod__", False):
                redefinable[name] = inherited
            elif name not in redefinable and is_redefined(kind, name, inherited):
                raise ConfigurationError(
                    f"{kind.__name__} redefines {name} of {owner.__name__}, but only hooks can "
                    "be redefined: choose another name"
                )
    for name, inherited in redefinable.items():
        is_flag = isinstance(inherited, bool)
        value: Any = inspect.getattr_static(kind, name)
        fault = fault_of_flag(value) if is_flag else fault_of_hook(value, inherited)
        if fault:
            raise ConfigurationError(f"{kind.__name__}.{name} must {fault}")


def is_redefined(kind: type, name: str, inherited: object) -> bool:
    """Return whether a class has something else by a name that it inherits."""
    value = inspect.getattr_static(kind, name, inherited)
    if name == "_abc_impl":  # Python sets it in each abstract class, over what the class defines
        return type(value) is not type(inherited)
    return not name.startswith("__") and value is not inherited


def fault_of_attribute(value: object, inherited: object) -> str:
    """Return what a store has to change in an attribute that it sets on itself; `""`: nothing.

    A function in place of a method is accepted, as mocks need it.

    Args:
        value: of the attribute.
        inherited: what the base class has by its name, None: nothing.
    """
    if isinstance(inherited, bool):
        return fault_of_flag(value)
    is_method = hasattr(type(inherited), "__get__") and not isinstance(inherited, property)
    if is_method and not callable(value):
        return f"be a method, or have another name; its type is {type(value).__name__}"
    return ""


def fault_of_flag(value: object) -> str:
    """Return what a class has to change in what it has by the name of a flag; `""`: nothing."""
    if isinstance(value, bool):
        return ""
    return f"be True or False, or have another name; its type is {type(value).__name__}"


def fault_of_hook(value: Any, hook: Any) -> str:
    """Return what a class has to change in what it has by the name of a hook; `""`: nothing."""
    is_bound = hasattr(type(value), "__get__") and not isinstance(value, staticmethod)
    if not callable(value) or not is_bound:
        return f"be a method, or have another name; its type is {type(value).__name__}"
    parameters = inspect.signature(hook).parameters
    named = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
    positional = [name for name in parameters if name not in named]
    try:
        inspect.signature(value).bind(*positional, **dict.fromkeys(named))
    except (TypeError, ValueError) as error:
        return (
            f"take the arguments ({', '.join(parameters)}) of the hook of this name, or have "
            f"another name ({error})"
        )
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        return "return its result, not yield it, or have another name; it is a generator function"
    is_async = inspect.iscoroutinefunction(value)
    if is_async and not inspect.iscoroutinefunction(hook):
        return f"be defined with `def`, or have another name: {COROUTINES}"
    # A decorator may be a plain function that returns what the coroutine function returns.
    is_async = is_async or inspect.iscoroutinefunction(inspect.unwrap(value))
    if inspect.iscoroutinefunction(hook) and not is_async:
        return f"be defined with `async def`, or have another name: {COROUTINES}"
    return ""
