"""Connections that a Python worker of Spark keeps between two tasks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar

from eventhub_checkpoints._shared.per_process import PerProcess


class Reusable(Protocol):
    """Connection that may be used again."""

    @property
    def is_usable(self) -> bool:
        """Return whether it still serves the next task."""

    def close(self) -> None:
        """Disconnect."""


K = TypeVar("K")
C = TypeVar("C", bound=Reusable)

MOST_KEPT = 4
"""Connections kept in a process: a query may join several hubs, in tasks that take turns."""


class Idle(NamedTuple, Generic[K, C]):
    """Connection that no task uses.

    Attributes:
        key: what it was opened for.
        connection: returned by a task that has succeeded.
        opened: by `time.monotonic`.
    """

    key: K
    connection: C
    opened: float


class KeptConnections(Generic[K, C]):
    """Connections lent to the tasks of a worker process.

    It runs the tasks of many micro-batches, one at a time, so a stream does not connect for each.
    A forked child begins without any.

    Args:
        connect: opens a connection for a key; equal keys share connections.
        replaced_after: seconds after which a connection is not used again.
    """

    def __init__(self, connect: Callable[[K], C], replaced_after: float = float("inf")) -> None:
        self._connect, self._replaced_after = connect, replaced_after
        self._idle: PerProcess[list[Idle[K, C]]] = PerProcess(list)

    @contextmanager
    def lent(self, key: K) -> Iterator[C]:
        """Lend a connection to a task: that of an earlier task, or a new one.

        It is closed if the task fails, or does not read to its end.
        """
        lent = self._take(key) or Idle(key, self._connect(key), time.monotonic())
        try:
            yield lent.connection
        except BaseException:
            lent.connection.close()
            raise
        idle = self._idle.value
        idle.append(lent)
        for oldest in idle[:-MOST_KEPT]:
            idle.remove(oldest)
            oldest.connection.close()

    def close(self) -> None:
        """Close the connections of this process that no task uses."""
        while self._idle.value:
            self._idle.value.pop().connection.close()

    def _take(self, key: K) -> Idle[K, C] | None:
        """Remove and return the connection for a key, if there is one; close what is unusable."""
        idle, taken = self._idle.value, None
        for each in list(idle):
            is_old = time.monotonic() >= each.opened + self._replaced_after
            if is_old or not each.connection.is_usable:
                idle.remove(each)
                each.connection.close()
            elif taken is None and each.key == key:
                idle.remove(each)
                taken = each
        return taken
