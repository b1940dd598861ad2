"""State that a forked child does not share with its parent."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class PerProcess(Generic[Value]):
    """Value that is made anew in a forked child.

    The parent's may be a lock held by a thread that the child does not have, or half changed.

    Args:
        make: makes the value, when it is first needed in a process.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._values: dict[int, Value] = {}

    @property
    def value(self) -> Value:
        """Return the value of this process."""
        process_id = os.getpid()
        if process_id not in self._values:
            # Two threads may both make one; both get the one that is stored first.
            self._values.setdefault(process_id, self._make())
        return self._values[process_id]
