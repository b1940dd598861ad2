# Not derived: edit this file and its async twin together.
"""Waiting for the driver, in a thread."""

import math
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.stores.cassandra.driver import ResponseFuture, ResultSet, started

T = TypeVar("T")


def answered(request: ResponseFuture) -> ResultSet:
    """The first page of the answer.

    The driver's own `result` waits without end where its thread is gone, as in a forked process.
    """
    arrival: SimpleQueue[Any] = SimpleQueue()
    request.add_callbacks(arrival.put, arrival.put)
    try:
        answer = arrival.get(timeout=time_left())
    except Empty:
        raise TimeoutError("no answer in time") from None
    if isinstance(answer, Exception):
        raise answer
    return ResultSet(request, answer)


def apart(function: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """The result of what blocks without a bound of its own.

    Raises:
        TimeoutError: no time is left; `undo` is given the result when it comes after all.
    """
    outcome = started(function, undo)
    try:
        return outcome.result(time_left())
    except TimeoutError:
        if outcome.cancel():
            raise
    # It came just now, or the error is its own.
    return outcome.result()


def time_left() -> float | None:
    """The time that the running call has left, as a thread waits for it."""
    left = seconds_left()
    return None if math.isinf(left) else left
