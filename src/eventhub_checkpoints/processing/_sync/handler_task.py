# Not derived: edit this file and its async twin together.
"""A handler that runs to its end, whatever the client does meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from eventhub_checkpoints._shared._sync.client_check import called

T = TypeVar("T")


def to_the_end(function: Callable[..., T], *args: Any, seconds: float | None = None) -> T:
    """Call the function; nothing can cut it off."""
    return function(*args)


HANDLER: ContextVar[object] = ContextVar("eventhub_checkpoints_handler", default=None)
"""The thread in which a function of the user's is called; a thread that this starts may inherit
it."""


@contextmanager
def as_handler() -> Iterator[None]:
    """What is called in here is the user's, and the processor waits for it."""
    token = HANDLER.set(threading.current_thread())
    try:
        yield
    finally:
        HANDLER.reset(token)


def is_handler() -> bool:
    """Whether the caller is a function that the processor waits for."""
    return HANDLER.get() is threading.current_thread()


class Runner:
    """Runs the handlers of one claim, in the thread in which the client delivers and closes."""

    def begin(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function."""
        function(*args)

    run = begin

    def tried(self, function: Callable[..., Any], *args: Any) -> BaseException | None:
        """Call a function of the user's; what it raised."""
        try:
            with as_handler():
                called(function, *args)
        except BaseException as error:
            return error
        return None

    def end(self, seconds: float) -> bool:
        """Nothing runs while a partition is closed."""
        return True
