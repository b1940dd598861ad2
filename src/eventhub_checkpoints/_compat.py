"""What differs between the colours: waiting, and doing several things at once."""

import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from eventhub_checkpoints._deadline import deadline, seconds_left

Lock = threading.Lock
sleep = time.sleep

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def place() -> object:
    """Where this runs: connections and locks belong to one process."""
    return os.getpid()


def within(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function; it asks `seconds_left` and has its driver cut it off.

    Raises:
        TimeoutError: no time was left to begin.
    """
    with deadline(seconds):
        if seconds_left() <= 0:
            raise TimeoutError("no time was left for this request")
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
        raise TimeoutError("what was under way before it did not end in time")
    try:
        yield
    finally:
        lock.release()
