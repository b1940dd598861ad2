"""Reader of a partition that has no end: from a position on, in batches."""

import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from eventhub_checkpoints.consume.partition_batch import PartitionBatch
from eventhub_checkpoints.consume.settings import ConsumeSettings
from eventhub_checkpoints.receive.address import STOP_CHECK, Address, Portion, StoppedError
from eventhub_checkpoints.receive.batches import rows_of, schema_of
from eventhub_checkpoints.receive.columns import Columns
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.read_plan import resolve, retained_start
from eventhub_checkpoints.receive.reader import TailReader, unless_stopped


@dataclass
class Buffer:
    """Memory for what all partitions of a member have received and not handed on.

    Each partition may use an equal share of it, so that one whose consumer is slow leaves the
    others theirs.

    Attributes:
        size: bytes of bodies.
        partitions: number of partitions that are read.
    """

    size: int
    partitions: int = 0

    @property
    def share(self) -> int:
        """Bytes of one partition."""
        return self.size // max(1, self.partitions)


EXCESS = 2
"""Times its size above which a batch is cut: the last read of a link may bring more than it lacks.
"""
LARGEST = 2**29
"""Bytes of bodies in a batch. An Arrow array of them has 2 GiB at most."""


class PartitionReader:
    """Reads one partition in batches, in one thread at a time; `stop` may come from any.

    Bound, in bytes of bodies: what `next` has received and not returned is at most the share of the
    buffer, and one read of the link more. On the public path, the client's lists come on top.

    Args:
        address: the hub.
        partition_id: which partition.
        start: where it begins.
        settings: of the member.
        buffer: of the member.
        max_idle: seconds without an event after which `next` returns a batch without rows; None:
            never.
    """

    def __init__(
        self,
        address: Address,
        partition_id: str,
        start: EventPosition,
        settings: ConsumeSettings,
        buffer: Buffer,
        max_idle: float | None = None,
    ) -> None:
        self._address, self._partition_id, self._start = address, partition_id, start
        self._settings, self._buffer = settings, buffer
        self._max_idle = math.inf if max_idle is None else max_idle
        self._schema = schema_of(settings.names)
        self._stopped = threading.Event()
        # A task that is cancelled leaves `next` running in its thread.
        self._reading = threading.Lock()
        self._reader: TailReader | None = None
        self._pending, self._size = Columns(), 0

    def open(self) -> None:
        """Find the first event to read; the link is opened by the first `next`.

        Raises:
            ConfigurationError: there is no such hub or partition, or access is refused.
            DataLossError: the hub does not have the position, and data loss is an error.
            HubUnavailableError: it did not answer.
        """
        with self._reading, suppress(StoppedError):
            start = unless_stopped(self._stopped, self._first)
            settings = self._settings.read
            self._reader = TailReader(
                self._address, self._partition_id, start, settings, self._stopped
            )
            self._parts = self._reader.parts()

    def _first(self) -> int:
        """Return the sequence number of the first event to read."""
        settings, id_ = self._settings.read, self._partition_id
        timeout = settings.operation_timeout
        properties = partition_properties(self._address, [id_], timeout=timeout)
        start = resolve(self._address, {id_: self._start}, properties, timeout)[id_]
        return retained_start(self._address, settings, properties[id_], start)

    def next(self) -> PartitionBatch | None:
        """Return the next batch; None once stopped.

        A batch is complete with `max_rows` rows, with `max_bytes` of bodies or the share of the
        buffer, or when its first event has waited for `max_wait`.

        Raises:
            DataLossError: events have expired before they were read, and that is an error.
            HubUnavailableError: the hub does not deliver; or another receiver has taken the
                partition.
        """
        with self._reading, suppress(StoppedError):
            return self._next()
        return None

    def _next(self) -> PartitionBatch | None:
        if self._stopped.is_set():
            return None
        assert self._reader is not None, "open() comes first"
        settings, since = self._settings, time.monotonic()
        ready_at = since + settings.max_wait if self._pending else math.inf
        while not self._stopped.is_set():
            limit = max(1, min(settings.max_bytes, self._buffer.share, LARGEST))
            now = time.monotonic()
            is_full = len(self._pending) >= settings.max_rows or self._size >= limit
            if self._pending and (is_full or now >= ready_at):
                return self._taken(limit)
            if not self._pending and now >= since + self._max_idle:
                return PartitionBatch.of(self._partition_id, Columns(), self._schema)
            rows = settings.max_rows - len(self._pending)
            self._reader.portion = Portion(limit - self._size, rows, settings.fields)
            self._reader.tick = max(0.0, min(STOP_CHECK, ready_at - now))
            part = next(self._parts)
            if part and not self._pending:
                ready_at = time.monotonic() + settings.max_wait
            self._add(part)
        return None

    def stop(self) -> None:
        """Have `next` return None soon."""
        self._stopped.set()

    def close(self) -> None:
        """Close the link."""
        self._stopped.set()
        with self._reading:
            if self._reader is not None:
                self._parts.close()

    def _add(self, part: Columns) -> None:
        if part:
            self._size += part.size
            if self._pending:
                self._pending.extend(part)
            else:
                self._pending = part

    def _taken(self, size: int) -> PartitionBatch:
        """Return what is pending, without what exceeds `max_rows`, or twice this size (bytes)."""
        columns, self._pending = self._pending, Columns()
        rows = self._settings.max_rows
        # The public path delivers lists of its own size.
        if self._size > EXCESS * size:
            rows = min(rows, rows_of(columns.bodies, size))
        if len(columns) > rows:
            columns, self._pending = columns.part(0, rows), columns.part(rows, len(columns))
        self._size = self._pending.size
        return PartitionBatch.of(self._partition_id, columns, self._schema)
