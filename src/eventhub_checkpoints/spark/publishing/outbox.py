"""A thread that brings positions to a writer: newest wins, and again until it is done."""

import logging
import random
import threading
from collections.abc import Callable, Mapping

from eventhub_checkpoints._shared.retry import pause
from eventhub_checkpoints.errors import CheckpointStoreError, StoreUnavailableError
from eventhub_checkpoints.spark.publishing.forward import LastEvent

_LOGGER = logging.getLogger(__name__)


class Outbox:
    """Hands the newest position of each partition to a writer, in a thread of its own.

    Of what waits for a partition only the highest sequence number is written. What could not be
    written goes to the end of the row, and is tried again after pauses that grow.

    Args:
        write: is called with a partition id and its last event, by one thread.
        what: whose positions these are, for errors.

    Attributes:
        failures: attempts that have raised.
    """

    def __init__(self, write: Callable[[str, LastEvent], None], what: object) -> None:
        self.failures = 0
        self._write = write
        self._what = what
        self._changed = threading.Condition()
        self._waiting: dict[str, LastEvent] = {}
        self._written: dict[str, LastEvent] = {}
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def waiting(self) -> Mapping[str, LastEvent]:
        """What is not written yet, by partition id."""
        with self._changed:
            return dict(self._waiting)

    def put(self, events: Mapping[str, LastEvent]) -> None:
        """Hand positions over; returns at once."""
        with self._changed:
            for partition, event in events.items():
                # Progress names every partition, also those that have not moved.
                if event != self._written.get(partition):
                    self._waiting[partition] = max(event, self._waiting.get(partition, event))
            if self._waiting and self._thread is None and not self._is_closed:
                # Daemon: a store that hangs must not keep the job's process from ending.
                self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> None:
        """Wait until everything that was handed over is written.

        Raises:
            StoreUnavailableError: it is not, after `timeout` (s).
            CheckpointStoreError: the writer's, where waiting does not heal it.
        """
        with self._changed:
            # Whoever waits for the next attempt is woken, and its outcome is this flush's.
            self._error = None
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or is_final(self._error), timeout)
            late, error = ", ".join(sorted(self._waiting, key=int)), self._error
        if late and error is not None and is_final(error):
            raise error
        if late:
            raise StoreUnavailableError(
                f"the last checkpoints of {self._what}, partition {late}, are not in the store "
                f"after {timeout:g} s; they are tried again until the publisher is closed"
            ) from error

    def close(self, timeout: float) -> None:
        """End the thread; wait no longer than `timeout` (s) for the write that is under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        attempt = 0
        while found := self._next():
            try:
                self._write(*found)
            except Exception as error:
                self._failed(error, found[0])
                self._rest(pause(attempt, float("inf"), random.random()))
                attempt += 1
            else:
                self._done(*found)
                attempt = 0

    def _next(self) -> tuple[str, LastEvent] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else next(iter(self._waiting.items()))

    def _done(self, partition: str, event: LastEvent) -> None:
        with self._changed:
            self._error = None
            self._written[partition] = event
            newest = self._waiting.pop(partition)
            if newest != event:
                self._waiting[partition] = newest
            self._changed.notify_all()

    def _failed(self, error: Exception, partition: str) -> None:
        with self._changed:
            self.failures += 1
            if type(error) is not type(self._error):
                _LOGGER.warning("checkpoints of %s wait for their store: %s", self._what, error)
            self._error = error
            self._waiting[partition] = self._waiting.pop(partition)
            self._changed.notify_all()

    def _rest(self, seconds: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._error is None, seconds)


def is_final(error: Exception | None) -> bool:
    """Whether waiting does not heal it."""
    return isinstance(error, CheckpointStoreError) and not isinstance(error, StoreUnavailableError)
