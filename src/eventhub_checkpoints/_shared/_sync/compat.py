# Not derived: edit this file and its async twin together.
"""What differs between sync and async: waiting, and running calls in parallel."""

import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from eventhub_checkpoints._shared.deadline import bounded_context, seconds_left
from eventhub_checkpoints._shared.workers import workers

Lock = threading.Lock
sleep = time.sleep

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def place() -> object:
    """Where this runs: connections and locks belong to one process."""
    return os.getpid()


def bounded(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline; an outer deadline that is nearer stays in force."""
    return bounded_context(seconds).run(function, *args, **kwargs)


def uninterrupted(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline, where no signal handler can raise in the middle of it.

    A time limit by signal, or Ctrl-C, ends the wait for the call; the call itself ends as usual.
    """
    context = bounded_context(seconds)
    if threading.get_ident() != threading.main_thread().ident:
        return context.run(function, *args, **kwargs)
    return workers.call(partial(context.run, function, *args, **kwargs))


def caller() -> object:
    """Return the thread that calls, for `ended`."""
    return threading.current_thread()


def ended(one: object, seconds: float) -> None:
    """Wait for nothing: the thread of a client is joined by who has started it."""


def within(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline; its driver asks `seconds_left` and ends by then.

    Raises:
        TimeoutError: no time was left to begin.
    """
    if min(seconds, seconds_left()) <= 0:
        raise TimeoutError("no time was left for this request")
    return bounded(seconds, function, *args, **kwargs)


def completed(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call the function; nothing cancels a sync call."""
    return function(*args, **kwargs)


def for_each(function: Callable[[Item], Result], items: Sequence[Item], limit: int) -> list[Result]:
    """Call the function for each item, at most `limit` at a time; results in the items' order."""
    if len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(limit, len(items)), "eventhub-checkpoints") as pool:
        # A context can be entered by one thread at a time, so each call gets its own copy.
        calls = [pool.submit(contextvars.copy_context().run, function, item) for item in items]
    return [call.result() for call in calls]


@contextmanager
def holding(lock: threading.Lock, seconds: float) -> Iterator[None]:
    """Hold the lock.

    Raises:
        TimeoutError: it was not free in time.
    """
    if not lock.acquire(timeout=seconds):
        raise TimeoutError("the previous call has not ended in time")
    try:
        yield
    finally:
        lock.release()
