# Not derived: edit this file and its async twin together.
"""Primitives that differ between sync and async: waiting, and running calls in parallel."""

import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from eventhub_checkpoints._shared.deadline import (
    NO_TIME,
    bounded_context,
    deadline,
    seconds_left,
)
from eventhub_checkpoints._shared.workers import workers

Lock = threading.Lock
Condition = threading.Condition

LOOKING_UP = 0.5
"""Seconds after which a wait lets signals be handled."""
sleep = time.sleep

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class InFlight:
    """Counts the calls in flight, each a `with` block, in all threads."""

    def __init__(self) -> None:
        self.count = 0
        # Held by itself at every request: a condition's methods are Python, a lock's are not.
        self._lock = threading.RLock()
        self._none_left = threading.Condition(self._lock)

    def __enter__(self) -> None:
        with self._lock:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.count -= 1
            if not self.count:
                self._none_left.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until no call is in flight, or the time is over."""
        with self._none_left:
            self._none_left.wait_for(lambda: not self.count, seconds)


def in_thread(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a blocking function: there is no event loop that it could hold up."""
    return function(*args, **kwargs)


def loop_key() -> object:
    """Return the process to which connections and locks belong."""
    return workers.process


def bounded(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline; an earlier outer deadline stays in force."""
    return bounded_context(seconds).run(function, *args, **kwargs)


def uninterrupted(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline, out of reach of exceptions from signal handlers.

    A time limit by signal, or Ctrl-C, ends the wait for the call; the call itself completes.
    """
    context = bounded_context(seconds)
    if threading.get_ident() != threading.main_thread().ident:
        return context.run(function, *args, **kwargs)
    return workers.call(partial(context.run, function, *args, **kwargs))


def caller() -> object:
    """Return the calling thread, for `ended`."""
    return threading.current_thread()


def ended(task: object, seconds: float) -> None:
    """Return at once: the thread of a client is joined by the code that started it."""


def is_over(thread: object) -> bool:
    """Return whether a thread, as returned by `caller`, has ended."""
    return isinstance(thread, threading.Thread) and not thread.is_alive()


@contextmanager
def attempt(limit: float) -> Iterator[None]:
    """Limit the block to `limit` seconds and to what the call has left.

    Only for code inside of `bounded`; see `deadline`. The block is not cancelled: its driver reads
    `seconds_left`, and ends by then.

    Raises:
        TimeoutError: no time was left to start it.
    """
    with deadline(min(limit, seconds_left())):
        yield


def within(
    seconds: float,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Result:
    """Call the function with a deadline; its driver reads `seconds_left` and ends by then.

    Raises:
        TimeoutError: no time was left to start it.
    """
    if min(seconds, seconds_left()) <= 0:
        raise TimeoutError(NO_TIME)
    return bounded(seconds, function, *args, **kwargs)


def completed(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call the function; a sync call cannot be cancelled."""
    return function(*args, **kwargs)


def for_each(function: Callable[[Item], Result], items: Sequence[Item], limit: int) -> list[Result]:
    """Call the function for each item, at most `limit` at a time; return results in order."""
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
        TimeoutError: the lock was not released in time.
    """
    if not lock.acquire(timeout=seconds):
        raise TimeoutError("the previous call has not ended in time")
    try:
        yield
    finally:
        lock.release()


def holds_within(changed: Condition, predicate: Callable[[], object], seconds: float) -> bool:
    """Wait until a predicate holds, at most `seconds`; return whether it does.

    The caller holds the condition.
    """
    end = time.monotonic() + seconds
    # A signal that comes just before the main thread waits does not interrupt the wait.
    while not changed.wait_for(predicate, max(0, min(LOOKING_UP, end - time.monotonic()))):
        if time.monotonic() >= end:
            return bool(predicate())
    return True
