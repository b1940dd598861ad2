# Not derived: edit this file and its async twin together.
"""How this colour waits for the threads that read, and asks the hub: it does nothing else."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from eventhub_checkpoints.receive.arrow.plan import CLOSE_TIMEOUT, Reading
from eventhub_checkpoints.receive.parallel_reader import SideBySide
from eventhub_checkpoints.receive.ranges import OffsetRange

T = TypeVar("T")

IS_ASYNC = False


class Source(SideBySide):
    """Some ranges, read side by side."""

    def __init__(self, reading: Reading, ranges: Sequence[OffsetRange]) -> None:
        at_once = reading.partitions_at_once
        super().__init__(reading.address, ranges, reading.settings, at_once)

    def abandon(self) -> None:
        """Have all threads end soon; for whoever may not wait."""
        self.stop()

    def close(self) -> None:
        """Have all threads end, and wait for it."""
        self.stop()
        self.join(CLOSE_TIMEOUT)


class Once(Generic[T]):
    """Work that is done once for all threads that wait for it. Work that failed is begun anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._result: T | None = None

    def result(self, begin: Callable[[], T]) -> T:
        """The result of the work, which is begun where it has not been."""
        with self._lock:
            if self._result is None:
                self._result = begin()
            return self._result

    def end(self) -> None:
        """Do nothing: the thread that does the work finds out afterwards that nobody wants it."""


def call(function: Callable[..., T], *args: object) -> T:
    """Call the function."""
    return function(*args)
