# Derived from _async/inbox.py by tools/unasync.py; edit that file.
"""Batches and notices between the workers of a client and whoever iterates over them."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from eventhub_checkpoints._shared._sync.compat import Condition, Lock, holds_within
from eventhub_checkpoints.consume.partition_batch import PartitionBatch


@dataclass(eq=False)
class Session:
    """Time for which a partition is held.

    Attributes:
        is_ending: whether no further batch is returned.
        is_over: whether its user knows that.
    """

    partition_id: str
    is_ending: bool = False
    is_over: bool = False


class Delivered(NamedTuple):
    """Batch of a partition."""

    session: Session
    batch: PartitionBatch


class Notice(NamedTuple):
    """Message that a partition was assigned, or is lost."""

    session: Session
    is_lost: bool


class Idle(NamedTuple):
    """Message that nothing has come for a while."""


class Inbox:
    """Queue in which each partition has at most one batch, so that a busy one holds up no other.

    Each batch has a condition of its own: with a common one, every batch that is taken would wake
    the workers of all partitions.

    Args:
        taken: called with each batch that `next` returns, before anybody may learn that its
            partition is lost.
    """

    def __init__(self, taken: Callable[[Delivered], None]) -> None:
        self._taken = taken
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._items: deque[Delivered | Notice] = deque()
        self._waiting: dict[Session, Condition] = {}
        self._error: Exception | None = None
        self._is_finished = self._is_closed = False

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is taken any more."""
        return self._is_finished

    def put(self, item: Delivered) -> None:
        """Add a batch, and wait until it is taken or dropped."""
        with self._changed:
            if self._is_closed or item.session.is_ending:
                return
            taken = self._waiting[item.session] = Condition(self._lock)
            self._items.append(item)
            self._changed.notify_all()
            try:
                taken.wait_for(lambda: item.session not in self._waiting)
            finally:
                if item.session in self._waiting:  # the caller was cancelled
                    self._remove(item.session)

    def notify(self, notice: Notice) -> None:
        """Add a notice, and drop the batch of a partition that is lost."""
        with self._changed:
            if notice.is_lost:
                self._drop(notice.session)
            self._items.append(notice)
            self._changed.notify_all()

    def drop(self, session: Session) -> None:
        """Return no further batch of a partition, not even the one that waits to be taken."""
        with self._changed:
            self._drop(session)
            self._changed.notify_all()

    def _drop(self, session: Session) -> None:
        session.is_ending = True
        self._remove(session)

    def _remove(self, session: Session) -> None:
        """Remove the batch of a partition, if there is one."""
        kept = [
            item
            for item in self._items
            if not (isinstance(item, Delivered) and item.session is session)
        ]
        self._items = deque(kept)
        self._release(session)

    def _release(self, session: Session) -> None:
        """Have `put` return for the batch of a partition."""
        if taken := self._waiting.pop(session, None):
            taken.notify_all()

    def _is_ready(self) -> bool:
        return bool(self._items) or self._is_finished or self._error is not None

    def next(self, seconds: float = math.inf) -> Delivered | Notice | Idle | None:
        """Return the next item; None once finished or closed.

        Args:
            seconds: after which the answer is `Idle`, if there is no item.

        Raises:
            Exception: what `end` was called with, after the items that came before.
        """
        with self._changed:
            if not holds_within(self._changed, self._is_ready, seconds):
                return Idle()
            if self._is_finished:
                return None
            if self._items:
                item = self._items.popleft()
                if isinstance(item, Delivered):
                    self._taken(item)
                    self._release(item.session)
                return item
            error, self._error = self._error, None
            self._close()
        assert error is not None
        raise error

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, which a call of `wake` may make true."""
        with self._changed:
            return holds_within(self._changed, lambda: self._is_closed or holds(), seconds)

    def wake(self) -> None:
        """Have the conditions looked at again."""
        with self._changed:
            self._changed.notify_all()

    def end(self, error: Exception) -> None:
        """Have `next` raise an error."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def finish(self) -> None:
        """Have `next` return nothing more; what waits to be taken goes on waiting for `close`."""
        with self._changed:
            self._is_finished = True
            self._changed.notify_all()

    def close(self) -> None:
        """Drop everything; nobody waits any more."""
        with self._changed:
            self._close()

    def _close(self) -> None:
        self._is_finished = self._is_closed = True
        self._items.clear()
        for session in [*self._waiting]:
            self._release(session)
        self._changed.notify_all()
