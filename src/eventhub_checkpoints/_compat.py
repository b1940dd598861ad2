"""What differs between sync and async: waiting, and running calls in parallel."""

import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from eventhub_checkpoints._deadline import bounded_context, seconds_left

Lock = threading.Lock
sleep = time.sleep

POLL_SECONDS = 0.005

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


def for_each(function: Callable[[Item], Result], items: Sequence[Item], limit: int) -> list[Result]:
    """Call the function for each item, at most `limit` at a time; results in the items' order."""
    if len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(limit, len(items)), "eventhub-checkpoints") as pool:
        try:
            # A context can be entered by one thread at a time, so each call gets its own copy.
            calls = [pool.submit(contextvars.copy_context().run, function, item) for item in items]
            wait(calls)
        except BaseException:
            # Interrupted: calls that have not begun must not be made after this one was given up.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [call.result() for call in calls]


class CallLock:
    """Runs one call at a time, and is free again when that call has ended in any way.

    A signal handler may raise between any two steps, also between the acquisition of a
    `threading.Lock` with a timeout and the `try` that would release it. Here the holder is a
    value that the `finally` compares, and `with` on a lock is one step for a signal handler.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._holder: object = None

    def run(
        self,
        seconds: float,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call the function once no other call holds the lock.

        Raises:
            TimeoutError: it was not free within these seconds.
        """
        over = time.monotonic() + seconds
        holder = object()
        try:
            while not self._taken_by(holder):
                if time.monotonic() >= over:
                    raise TimeoutError("the previous call has not ended in time")
                sleep(POLL_SECONDS)
            return function(*args, **kwargs)
        finally:
            with self._guard:
                if self._holder is holder:
                    self._holder = None

    def _taken_by(self, holder: object) -> bool:
        with self._guard:
            if self._holder is None:
                self._holder = holder
            return self._holder is holder


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
