"""Concurrent reading of several ranges in bounded memory, which another thread can stop."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.stream import Stream, StreamWrapper

STOP_CHECK = 0.1
"""Interval (s) at which a silent stream checks whether it was stopped."""


class StoppedError(Exception):
    """Reading was stopped; ends a thread and is never shown."""


class StoppableAddress(Address):
    """Address whose streams raise `StoppedError` soon after `stopped` was set."""

    def __init__(self, address: Address, stopped: threading.Event) -> None:
        self.fully_qualified_namespace = address.fully_qualified_namespace
        self.eventhub_name = address.eventhub_name
        self.consumer_group = address.consumer_group
        self._address = address
        self._stopped = stopped

    def ask_partition_ids(self) -> list[str]:
        return self._address.ask_partition_ids()

    def ask_properties(self, partition_id: str) -> PartitionProperties:
        return self._address.ask_properties(partition_id)

    def try_properties(self, partition_id: str) -> PartitionProperties:
        return self._address.try_properties(partition_id)

    def ask_first(
        self, partition_id: str, start: str | datetime, inclusive: bool, timeout: float
    ) -> int | None:
        return self._address.ask_first(partition_id, start, inclusive, timeout)

    def open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        if self._stopped.is_set():
            raise StoppedError
        stream = self._address.open_stream(partition_id, start, until, settings)
        return StoppableStream(stream, self._stopped)

    def __str__(self) -> str:
        return str(self._address)


class StoppableStream(StreamWrapper):
    """Stream that checks regularly whether reading was stopped."""

    def __init__(self, stream: Stream, stopped: threading.Event) -> None:
        super().__init__(stream)
        self._stopped = stopped

    def next(self, timeout: float) -> Columns | None:
        """Return the next events as any stream.

        Raises:
            StoppedError: reading was stopped.
        """
        deadline = time.monotonic() + timeout
        while not self._stopped.is_set():
            left = deadline - time.monotonic()
            found = self._stream.next(max(0.0, min(STOP_CHECK, left)))
            if found is not None or left <= STOP_CHECK or self._stream.is_over:
                return found
        raise StoppedError


if TYPE_CHECKING:
    import pyarrow as pa


def no_news() -> None:
    """Do nothing: the consumer waits in `next`."""


class SideBySide:
    """Ranges of a hub, a few read at a time; the batches of each range come in order.

    A thread that has finished its range starts the next unread one. A thread ahead of the
    consumer waits: at most `at_once` batches are in the inbox, and each thread holds one more.

    Args:
        address: the hub.
        ranges: at most one per partition.
        settings: how each of them is read.
        at_once: number of threads, and of receivers.
        on_news: called by a thread whenever `next` would no longer wait; must not block.
    """

    def __init__(
        self,
        address: Address,
        ranges: Sequence[OffsetRange],
        settings: ReadSettings,
        at_once: int,
        on_news: Callable[[], None] = no_news,
    ) -> None:
        self._stopped = threading.Event()
        self._address = StoppableAddress(address, self._stopped)
        self._settings = settings
        self._on_news = on_news
        self._waiting = deque(ranges)
        self._inbox: deque[pa.RecordBatch] = deque()
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._at_once = self._running = min(at_once, len(ranges))
        # Daemon: a query that the client never answers must not block the program's exit.
        names = [f"read-batches-{number}" for number in range(self._at_once)]
        self._threads = [threading.Thread(target=self._run, name=n, daemon=True) for n in names]
        for thread in self._threads:
            thread.start()

    @property
    def is_ready(self) -> bool:
        """Return whether `next` would return at once."""
        return bool(self._inbox) or self._error is not None or self._running == 0

    def next(self) -> "pa.RecordBatch | None":
        """Return the next batch of any range; None after the last one, or once stopped.

        Raises:
            Exception: the error of one of the ranges, after the batches that came before it.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.is_ready)
            if self._inbox:
                batch = self._inbox.popleft()
                self._changed.notify_all()
                return batch
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def stop(self) -> None:
        """Tell all threads to end soon, and discard the batches not taken."""
        with self._changed:
            self._stopped.set()
            self._inbox.clear()
            self._error = None
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait until all threads have ended, at most `timeout` seconds for each."""
        for thread in self._threads:
            thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    wanted = self._waiting.popleft()
                except IndexError:
                    break
                self._read(wanted)
        except StoppedError:
            pass
        except Exception as error:
            self._fail(error)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
            self._on_news()

    def _read(self, wanted: OffsetRange) -> None:
        with closing(read_range(self._address, wanted, self._settings)) as batches:
            for batch in batches:
                self._put(batch)

    def _put(self, batch: "pa.RecordBatch") -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._inbox) < self._at_once or self._stopped.is_set()
            )
            if self._stopped.is_set():
                raise StoppedError
            self._inbox.append(batch)
            self._changed.notify_all()
        self._on_news()

    def _fail(self, error: Exception) -> None:
        """Keep the first error for `next`; batches in the inbox are handed out before it."""
        with self._changed:
            if not self._stopped.is_set():
                self._error = error
                self._stopped.set()
                self._changed.notify_all()
