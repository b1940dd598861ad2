# Not derived: edit this file and its async twin together.
"""Synchronous source of batches: waits for the reading threads."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from eventhub_checkpoints.receive.arrow.plan import CLOSE_TIMEOUT, Reading
from eventhub_checkpoints.receive.parallel_reader import SideBySide
from eventhub_checkpoints.receive.ranges import OffsetRange

T = TypeVar("T")

IS_ASYNC = False


class Source(SideBySide):
    """Ranges read concurrently."""

    def __init__(self, reading: Reading, ranges: Sequence[OffsetRange]) -> None:
        at_once = reading.partitions_at_once
        super().__init__(reading.address, ranges, reading.settings, at_once)

    def abandon(self) -> None:
        """Tell all threads to end soon, without waiting."""
        self.stop()

    def close(self) -> None:
        """Stop all threads and wait for them."""
        self.stop()
        self.join(CLOSE_TIMEOUT)


class Once(Generic[T]):
    """Work done once for all threads that wait for it. Failed work is started again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._result: T | None = None

    def result(self, begin: Callable[[], T]) -> T:
        """Return the result of the work, started if necessary."""
        with self._lock:
            if self._result is None:
                self._result = begin()
            return self._result

    def end(self) -> None:
        """Do nothing: the working thread notices afterwards that the result is not needed."""


def call(function: Callable[..., T], *args: object) -> T:
    """Call the function."""
    return function(*args)
