# Not derived: edit this file and its async twin together.
"""Waiting for the Cassandra driver in a thread."""

import math
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.stores.cassandra.driver import ResponseFuture, ResultSet, started

T = TypeVar("T")


def answered(request: ResponseFuture) -> ResultSet:
    """Wait for the first page of the response.

    The driver's own `result` blocks for ever if its thread is gone, as in a forked process.
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
    """Run a blocking function without a time limit in a thread, and return its result.

    Raises:
        TimeoutError: no time is left; a late result is passed to `undo`.
    """
    outcome = started(function, undo)
    try:
        return outcome.result(time_left())
    except TimeoutError:
        if outcome.cancel():
            raise
    # The result has just arrived, or the function itself raised the error.
    return outcome.result()


def time_left() -> float | None:
    """Return the time that the current call has left, as a timeout for a thread."""
    left = seconds_left()
    return None if math.isinf(left) else left
