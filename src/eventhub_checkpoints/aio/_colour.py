"""What is of the other colour, told before it does harm, and functions that may be of either."""

import inspect
from collections.abc import Callable
from typing import Any

from azure.eventhub.aio import CheckpointStore

from eventhub_checkpoints._core.settings import kind_of, name_of
from eventhub_checkpoints.errors import ConfigurationError

PREFETCH = 300
"""Events of one partition that an aio client asks for at a time, as it does by itself."""


def check_store(store: object) -> None:
    """Refuse what is no store for an aio client; what it answers would be lost.

    Raises:
        ConfigurationError: it is none.
    """
    update = getattr(store, "update_checkpoint", None)
    if isinstance(store, CheckpointStore) or inspect.iscoroutinefunction(update):
        return
    # Not what it is: a URL may hold a password.
    raise ConfigurationError(
        f"store is of type {kind_of(store)}; expected a checkpoint store for azure.eventhub.aio, "
        "such as those of eventhub_checkpoints.aio"
    )


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of the user's gives, whether it is a coroutine function or a plain one."""
    result = function(*args)
    return await result if inspect.isawaitable(result) else result


def check_plain(name: str, function: object) -> None:
    """Functions of either kind can be called here."""


SYNC_PROCESSOR = "eventhub_checkpoints.PartitionProcessor"


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
