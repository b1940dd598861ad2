# Not derived: edit this file and its async twin together.
"""Synchronous source of batches: waits for the reading threads."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import pyarrow as pa

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.arrow.plan import CLOSE_TIMEOUT, CLOSED, ReadRequest
from eventhub_checkpoints.receive.batches import ParallelReader
from eventhub_checkpoints.receive.ranges import OffsetRange

T = TypeVar("T")

IS_ASYNC = False


class ArrowExport:
    """Arrow stream: `pyarrow.table`, `polars.DataFrame` and DuckDB queries accept it directly."""

    schema: pa.Schema
    _is_closed: bool

    def to_reader(self) -> pa.RecordBatchReader:
        """Return all remaining batches as an Arrow reader; they are received as it is read.

        Raises:
            ConfigurationError: they are closed: the reader would be empty.
        """
        if self._is_closed:
            raise ConfigurationError(CLOSED)
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export an Arrow stream, for libraries that use the Arrow C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


class Source(ParallelReader):
    """Ranges read concurrently."""

    def __init__(self, request: ReadRequest, ranges: Sequence[OffsetRange]) -> None:
        at_once = request.partitions_at_once
        super().__init__(request.address, ranges, request.settings, at_once)

    def abandon(self) -> None:
        """Request all threads to end soon, without waiting."""
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
