"""Ranges as Arrow batches: exactly these events, or an error. One range, or several at once."""

import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate
from typing import Any

from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.receive.address import (
    STOP_CHECK,
    Address,
    OpenStream,
    StoppedError,
    Stream,
)
from eventhub_checkpoints.receive.columns import (
    COLUMNS,
    PARTITION,
    Columns,
    Text,
    TextMaps,
    Type,
    column_types,
)
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.receive.reader import RangeReader

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDriverError.of_extra("receiving Arrow batches", "arrow") from error

BYTES_PER_BATCH = 16 * 2**20
"""Bytes of bodies at which a batch is complete, however few its rows."""

DEFAULT_SETTINGS = ReadSettings()


def binary_array(values: Sequence[bytes]) -> pa.BinaryArray:
    """Return byte strings as an Arrow array."""
    # Arrow's own builder copies what it has whenever it grows; this copies each byte once.
    ends = pa.py_buffer(array("i", accumulate(map(len, values), initial=0)))
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, ends, pa.py_buffer(b"".join(values))]
    )


def string_array(texts: Sequence[Text | None]) -> pa.StringArray:
    """Return strings as an Arrow array."""
    # Most batches have columns without values, and a cast costs as much as 300 rows.
    if not texts or (texts[0] is None and texts.count(None) == len(texts)):
        return pa.nulls(len(texts), pa.string())
    # Twice as fast as passing strings, which would first decode UTF-8 to Python strings.
    return pa.array(texts, pa.binary()).cast(pa.string())


def time_array(milliseconds: Sequence[int | None]) -> pa.TimestampArray:
    """Return times as an Arrow array of Spark's microseconds."""
    return pa.array(milliseconds, pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))


def map_array(maps: TextMaps) -> pa.MapArray:
    """Return maps as an Arrow array."""
    keys, values = string_array(maps.keys), string_array(maps.values)
    return pa.MapArray.from_arrays(pa.array(maps.ends, pa.int32()), keys, values)


ARROW: Mapping[Type, tuple[pa.DataType, Callable[[Any], pa.Array]]] = {
    "binary": (pa.binary(), binary_array),
    "string": (pa.string(), string_array),
    "bigint": (pa.int64(), lambda values: pa.array(values, pa.int64())),
    "timestamp": (pa.timestamp("us", tz="UTC"), time_array),
    "map<string,string>": (pa.map_(pa.string(), pa.string()), map_array),
}
"""Arrow type of each type of column, and how its array is made."""

SCHEMA = pa.schema([(name, ARROW[kind][0]) for name, kind in column_types().items()])
"""Equal to the schema that Spark 4 derives from the source's columns; it compares exactly."""


def schema_of(names: Iterable[str]) -> pa.Schema:
    """Return the schema of some of the columns."""
    return pa.schema([SCHEMA.field(name) for name in names])


def record_batch(partition_id: str, columns: Columns, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Return an Arrow batch with one row per event of a partition, and the columns of a schema."""
    arrays = {
        declared.name: ARROW[declared.type][1](getattr(columns, field))
        for field, declared in COLUMNS.items()
        if declared.name in schema.names
    }
    arrays[PARTITION] = pa.repeat(pa.scalar(partition_id, pa.string()), len(columns))
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def read_range(
    address: Address,
    offsets: OffsetRange,
    settings: ReadSettings = DEFAULT_SETTINGS,
    open_stream: OpenStream | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Read a range in order, each event once, in batches of the columns in `SCHEMA`.

    Sequence numbers removed by compaction are skipped. The generator closes its receiver when it
    ends or is closed. The argument `open_stream` replaces the method of the address.

    Raises:
        DataLossError: events of the range have expired, or the hub ends before it.
        ConfigurationError: the hub or consumer group does not exist, or access is refused.
        HubUnavailableError: the hub has the events, but delivers none of them, or the client gave
            up after its own retries.
    """
    with closing(RangeReader(address, offsets, settings, open_stream).parts()) as parts:
        for columns in in_batches(parts, settings.rows_per_batch, BYTES_PER_BATCH):
            yield record_batch(offsets.partition_id, columns)


def rows_of(bodies: Sequence[bytes], size: int) -> int:
    """Return the number of first rows whose bodies have this size (bytes) together."""
    sizes = accumulate(map(len, bodies))
    return next((number for number, total in enumerate(sizes, 1) if total >= size), len(bodies))


def in_batches(parts: Iterable[Columns], rows: int, size: int) -> Iterator[Columns]:
    """Yield the events in parts of `rows` rows, or fewer if bodies reach `size` (bytes).

    A part that already has this size, as most of the fast path have, is not copied: the parts must
    not be used any more.
    """
    pending = Columns()
    for part in parts:
        if pending:
            pending.extend(part)
        else:
            pending = part
        while (is_large := pending.size >= size) or len(pending) >= rows:
            end = rows
            if is_large:
                end = min(rows, rows_of(pending.bodies, size))
            if end >= len(pending):
                yield pending
                pending = Columns()
            else:
                yield pending.part(0, end)
                pending = pending.part(end, len(pending))
    if pending:
        yield pending


class StoppableStream(Stream):
    """Stream that checks regularly whether reading was stopped; it closes the other stream."""

    def __init__(self, stream: Stream, stopped: threading.Event) -> None:
        self._stream, self._stopped = stream, stopped

    @property
    def reached(self) -> int:
        return self._stream.reached

    @property
    def is_over(self) -> bool:
        return self._stream.is_over

    @property
    def is_away(self) -> bool:
        return self._stream.is_away

    @property
    def trouble(self) -> str:
        return self._stream.trouble

    def close(self) -> None:
        self._stream.close()

    def next(self, timeout: float) -> Columns | None:
        """Return the next events as any stream.

        Raises:
            StoppedError: reading was stopped.
        """
        deadline = time.monotonic() + timeout
        while not self._stopped.is_set():
            left = deadline - time.monotonic()
            columns = self._stream.next(max(0.0, min(STOP_CHECK, left)))
            if columns is not None or left <= STOP_CHECK or self._stream.is_over:
                return columns
        raise StoppedError


class ParallelReader:
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
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self._stopped = threading.Event()
        self._address = address
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

    def next(self) -> pa.RecordBatch | None:
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
                    offsets = self._waiting.popleft()
                except IndexError:
                    break
                with closing(
                    read_range(self._address, offsets, self._settings, self._open_stream)
                ) as batches:
                    for batch in batches:
                        self._put(batch)
        except StoppedError:
            pass
        except Exception as error:
            # Batches in the inbox are handed out before the error, and only the first error is.
            with self._changed:
                if not self._stopped.is_set():
                    self._error = error
                    self._stopped.set()
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
            self._on_news()

    def _open_stream(
        self, partition_id: str, start: int, until: int, settings: ReadSettings
    ) -> Stream:
        if self._stopped.is_set():
            raise StoppedError
        stream = self._address.open_stream(partition_id, start, until, settings)
        return StoppableStream(stream, self._stopped)

    def _put(self, batch: pa.RecordBatch) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._inbox) < self._at_once or self._stopped.is_set()
            )
            if self._stopped.is_set():
                raise StoppedError
            self._inbox.append(batch)
            self._changed.notify_all()
        self._on_news()
