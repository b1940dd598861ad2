"""Background writer of checkpoints, which never moves them back."""

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared.deadline import pause
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store
from eventhub_checkpoints.spark.given import answers_at_once


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """Statistics of a publisher.

    Attributes:
        published: checkpoints written.
        with_offset: those of them that have an offset.
        stale: positions not written because the store was ahead.
        failures: attempts that the store rejected or did not answer; they are retried.
        waiting: last committed events that are not in the store yet, by partition id.
        stored: last events that the store is known to hold, by partition id.
    """

    published: int
    with_offset: int
    stale: int
    failures: int
    waiting: Mapping[str, int]
    stored: Mapping[str, int]


_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class LastEvent:
    """Last event of a partition that a query has committed.

    Attributes:
        sequence_number: of the event.
        offset: of the same event, an opaque string; `""` if it was not observed.
    """

    sequence_number: int
    offset: str = ""


class ForwardWriter:
    """Writer of checkpoints that never overwrites a later one, as far as that is known.

    Known positions come from a list before the first write, and from the writes since then. This
    package's stores also refuse a checkpoint that another writer has overtaken; then the positions
    are listed again.

    Attributes:
        stored: sequence numbers that the store holds, by partition id; None: to be listed.
        counters: `published`, `with_offset` (of the published ones) and `stale`.
    """

    def __init__(self, store: Any, scope: Scope) -> None:
        self.stored: Mapping[str, int] | None = None
        self.counters: Counter[str] = Counter()
        self._store = store
        self._scope = scope
        self._said_stale: set[str] = set()

    def write(self, partition: str, event: LastEvent) -> None:
        """Write a checkpoint, or log and count that the store is ahead.

        Raises:
            Exception: whatever the store raises; the outcome of the write is then unknown.
        """
        stored = self._known()
        if event.sequence_number < stored.get(partition, -1):
            self._stale(partition, event, stored[partition])
        elif event.sequence_number > stored.get(partition, -1):
            self._write(partition, event)

    def _known(self) -> Mapping[str, int]:
        if self.stored is None:
            rows = self._store.list_checkpoints(*self._scope)
            numbers = {row["partition_id"]: row["sequence_number"] for row in rows}
            self.stored = {one: number for one, number in numbers.items() if number is not None}
        return self.stored

    def _write(self, partition: str, event: LastEvent) -> None:
        checkpoint = {
            **self._scope.as_dict(),
            "partition_id": partition,
            "sequence_number": event.sequence_number,
            "offset": event.offset,
        }
        if is_refused(self._store, checkpoint):
            self.stored = None
            self._stale(partition, event, "a later one")
            return
        self.stored = {**self._known(), partition: event.sequence_number}
        self.counters["published"] += 1
        self.counters["with_offset"] += bool(event.offset)
        self._said_stale.discard(partition)

    def _stale(self, partition: str, event: LastEvent, stored: int | str) -> None:
        self.counters["stale"] += 1
        if partition in self._said_stale:
            return
        self._said_stale.add(partition)
        _LOGGER.warning(
            "checkpoint %s of partition %s of %s is not published, for the store is at %s. Where "
            "the query was rewound or the hub created again, reset the checkpoints and make a new "
            "publisher",
            *(event.sequence_number, partition, self._scope, stored),
        )


def is_refused(store: Any, checkpoint: Mapping[str, Any]) -> bool:
    """Write a checkpoint; return whether the store refused to move back.

    Most stores only log and count a refusal. A refusal of another user of the same store object may
    be counted here too, which costs one list.
    """
    counters: Mapping[str, int] = getattr(store, "counters", {})
    before = counters.get("stale_checkpoints", 0)
    try:
        store.update_checkpoint(checkpoint)
    except StaleCheckpointError:
        return True
    return counters.get("stale_checkpoints", 0) > before


def opened(store_or_url: CheckpointStore | str | Mapping[str, Any]) -> tuple[Any, bool]:
    """Return a store to write to, and whether it was opened here.

    Raises:
        ConfigurationError: it is not a synchronous store.
    """
    if isinstance(store_or_url, str | Mapping):
        return open_store(store_or_url), True
    if not answers_at_once(store_or_url, "update_checkpoint"):
        raise ConfigurationError(
            f"{type(store_or_url).__name__} cannot be written from the publisher's thread; "
            "expected a store of the synchronous kind (not of .aio), or the URL of one"
        )
    return store_or_url, False


class Outbox:
    """Queue whose background thread passes the newest position of each partition to a writer.

    Only the highest sequence number that waits for a partition is written. A failed position goes
    to the end of the queue, and is retried with increasing delays.

    Args:
        write: called with a partition id and its last event, by one thread.
        what: description of the positions, for errors.

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
        """Positions that are not written yet, by partition id."""
        with self._changed:
            return dict(self._waiting)

    def put(self, events: Mapping[str, LastEvent]) -> None:
        """Enqueue positions and return at once."""
        with self._changed:
            for partition, event in events.items():
                # Progress has every partition, including those without new events.
                if event != self._written.get(partition):
                    self._waiting[partition] = max(event, self._waiting.get(partition, event))
            if self._waiting and self._thread is None and not self._is_closed:
                # Daemon: a store that hangs must not prevent the process from exiting.
                self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> None:
        """Wait until all enqueued positions are written.

        Raises:
            StoreUnavailableError: they are not written after `timeout` (s).
            CheckpointStoreError: the writer's error, if a retry cannot succeed.
        """
        with self._changed:
            # This ends the pause before the next attempt, which decides the outcome of the flush.
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
        """Stop the thread; wait at most `timeout` (s) for a write in progress."""
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
    """Return whether a retry cannot succeed."""
    return isinstance(error, CheckpointStoreError) and not isinstance(error, StoreUnavailableError)
