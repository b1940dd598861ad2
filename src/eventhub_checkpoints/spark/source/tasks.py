"""What one Spark task reads: some ranges, one after another."""

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
"""How many more objects than were freed may be made before Python looks for cycles. A task has some
100,000 at most, and none of the client's events is part of a cycle: looking at them again and
again, as Python does after 700, takes a tenth of the time and finds nothing."""


@dataclass(frozen=True, repr=False)
class RangeTask(InputPartition):
    """What one Spark task reads. Its `repr` comes into logs and shows no secret."""

    address: Address
    wanted: tuple[OffsetRange, ...]
    settings: ReadSettings

    def __repr__(self) -> str:
        return f"RangeTask({self.address}, {list(self.wanted)})"


def make_tasks(options: SourceOptions, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
    """The ranges that hold anything, as so many tasks as the job has asked for."""
    wanted = [one for one in ranges if not one.is_empty]
    return [
        RangeTask(options.address, tuple(group), options.reading)
        for group in grouped(wanted, options.task_size.of(len(wanted)))
    ]


def read_task(partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    """Read the ranges of a task, on an executor.

    One receiver is attached at a time, over a connection of its own, when it is its turn: which
    worker gets which partition changes from batch to batch, and the official client cannot share
    a connection between receivers. The one before closes in the background, some 0.2 s later.
    Memory is that of one range, see `ReadSettings.prefetch`.

    Source: azure-eventhub 5.15.1, `_connection_manager.py`: its mode for sharing makes a
    connection that is never opened.
    """
    # Spark runs one task without a range of ours where there is nothing to read.
    if isinstance(partition, RangeTask):
        with collecting_rarely():
            for wanted in partition.wanted:
                yield from read_range(partition.address, wanted, partition.settings)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Have Python look for cycles only after `COLLECT_AFTER`; a worker has one task at a time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
