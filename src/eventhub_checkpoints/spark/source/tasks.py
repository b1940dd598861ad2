"""Spark tasks, each of which reads some ranges one after another."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.spark.source.limits import grouped
from eventhub_checkpoints.spark.source.options import SourceOptions
from eventhub_checkpoints.spark.source.pyspark_api import InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

COLLECT_AFTER = 500_000
"""Threshold of Python's garbage collector: allocations minus deallocations. A task has at most some
100,000 objects, and no event of the client is part of a cycle: collecting after every 700
allocations, Python's default, takes a tenth of the time and finds nothing."""


@dataclass(frozen=True, repr=False)
class RangeTask(InputPartition):
    """Ranges that one Spark task reads. Its `repr` is logged and shows no secret."""

    address: Address
    wanted: tuple[OffsetRange, ...]
    settings: ReadSettings

    def __repr__(self) -> str:
        return f"RangeTask({self.address}, {list(self.wanted)})"


def make_tasks(options: SourceOptions, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
    """Return tasks for the non-empty ranges, of the size that the job has configured."""
    wanted = [one for one in ranges if not one.is_empty]
    return [
        RangeTask(options.address, tuple(group), options.reading)
        for group in grouped(wanted, options.task_size.of(len(wanted)))
    ]


def read_task(partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    """Read the ranges of a task, on an executor.

    One receiver at a time is attached, over its own connection, when its range is read: which
    worker gets which partition changes from batch to batch, and the official client cannot share a
    connection between receivers. The previous connection closes in the background, in about 0.2 s.
    Memory is that of one range, see `ReadSettings.prefetch`.

    Source: azure-eventhub 5.15.1, `_connection_manager.py`: its mode for sharing makes a
    connection that is never opened.
    """
    # If there is nothing to read, Spark runs one task that is not a RangeTask.
    if isinstance(partition, RangeTask):
        with collecting_rarely():
            for wanted in partition.wanted:
                yield from read_range(partition.address, wanted, partition.settings)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage only after `COLLECT_AFTER`; a worker runs one task at a time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
