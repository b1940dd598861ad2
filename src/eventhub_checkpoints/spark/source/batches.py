"""Batches of the source: their ranges, limits of micro-batches, and the tasks that read them."""

import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from eventhub_checkpoints.errors import ConfigurationError, DataLossError
from eventhub_checkpoints.receive import read_plan
from eventhub_checkpoints.receive.address import (
    Address,
    Connection,
    HubState,
    PartitionProperties,
)
from eventhub_checkpoints.receive.batches import read_range
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OffsetRange, ReadSettings
from eventhub_checkpoints.spark.checkpoint_positions import starting_positions
from eventhub_checkpoints.spark.kept_connections import KeptConnections
from eventhub_checkpoints.spark.offsets import StreamOffset
from eventhub_checkpoints.spark.source.options import Limits, SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

Properties = Mapping[str, PartitionProperties]
"""What the hub retains, by partition id."""


def plan_batch(options: SourceOptions) -> list[OffsetRange]:
    """Return the range of each partition that has anything to read.

    Raises:
        ConfigurationError: a position names a partition that the hub does not have, or a range
            ends before it begins.
        DataLossError: a range begins before the first retained event or after the end.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the checkpoint store could not be read.
    """
    address, timeout = options.address, options.reading.operation_timeout
    properties = partition_properties(address, timeout=timeout)
    check_partitions("endingPositions", options.ending_positions, properties)
    ends = {key: options.ending_positions.get(key, options.ending_position) for key in properties}
    starts = starts_of(options, properties)
    first = read_plan.resolve(address, starts, properties, timeout)
    end = read_plan.resolve(address, ends, properties, timeout)
    return [
        read_plan.retained(address, options.reading, properties[key], first[key], end[key])
        for key in properties
    ]


def starts_of(options: SourceOptions, properties: Properties) -> dict[str, EventPosition]:
    """Return the checkpoint of each partition; else its own position; else the default."""
    check_partitions("startingPositions", options.starting_positions, properties)
    starts = {
        partition: options.starting_positions.get(partition, options.starting_position)
        for partition in properties
    }
    if not options.checkpoint_store:
        return starts
    if options.missing == "error":
        # A partition that never had an event has no checkpoint, and nothing to lose.
        starts = {
            partition: starts[partition]
            for partition, each in properties.items()
            if not each.next_sequence_number
        }
    scope, ids = options.address.scope(options.checkpoint_group), list(properties)
    return dict(starting_positions(options.checkpoint_store, scope, ids, missing=starts).positions)


def check_partitions(
    name: str, positions: Mapping[str, EventPosition], properties: Properties
) -> None:
    """Refuse positions of partitions that the hub does not have.

    Raises:
        ConfigurationError: there is one.
    """
    if absent := sorted(positions.keys() - properties.keys(), key=int):
        raise ConfigurationError(
            f"{name} names partition {', '.join(absent)}; the hub has {', '.join(properties)}"
        )


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Start of one partition in the next micro-batch.

    Attributes:
        number: sequence number of the first event.
        lost: number of lost events before it; None if it cannot be determined.
        loss: error that describes the loss; None if nothing is lost.
    """

    number: int
    lost: int | None = 0
    loss: DataLossError | None = None


def partition_starts(
    address: Address, start: StreamOffset, state: HubState
) -> dict[str, PartitionStart]:
    """Return where each partition of the hub begins in the next micro-batch.

    A new partition begins at its first event, and so does every partition of a hub that was created
    again. An empty partition begins at the number that its next event will get, so an empty hub is
    not mistaken for one that was created again.
    """
    starts = {}
    for partition, held in state.partitions.items():
        number, first = start.next.get(partition), held.first_sequence_number
        if number is None or not start.is_of(state.created):
            starts[partition] = PartitionStart(first)
        elif number < first:
            loss = read_plan.expired(address, number, held)
            starts[partition] = PartitionStart(first, first - number, loss)
        elif number > held.next_sequence_number:
            loss = read_plan.ahead_of_end(address, number, held)
            starts[partition] = PartitionStart(first, None, loss)
        else:
            starts[partition] = PartitionStart(number)
    return starts


def recreation(address: Address, offset: StreamOffset, state: HubState) -> DataLossError | None:
    """Return an error if the hub was deleted and created again since the offset."""
    if offset.is_of(state.created):
        return None
    held = next(iter(state.partitions.values()))
    number = offset.next.get(held.partition_id, 0)
    return read_plan.created_again(address, held, number, offset.created, state.created)


def losses(
    address: Address,
    start: StreamOffset,
    state: HubState,
    starts: Mapping[str, PartitionStart],
) -> Sequence[DataLossError]:
    """Return an error for each loss: events and partitions that the hub no longer has.

    Of a hub that was created again there is only one.
    """
    if again := recreation(address, start, state):
        return [again]
    gone = [
        read_plan.partition_gone(address, partition, number, state.partitions)
        for partition, number in start.next.items()
        if partition not in state.partitions
    ]
    return [*gone, *(each.loss for each in starts.values() if each.loss)]


def expired_events(
    ranges: Sequence[OffsetRange], before: StreamOffset, end: StreamOffset
) -> dict[str, int]:
    """Return the number of events by partition that a batch no longer has, though it was planned.

    Args:
        ranges: what `retained` left of the batch from `before` to `end`.
    """
    gone = {
        each.partition_id: min(each.from_sequence_number, end.next[each.partition_id])
        - end.begin(each.partition_id, before)
        for each in ranges
    }
    # Below 0, if the hub was created again and reading moved to its first event.
    return {partition: count for partition, count in gone.items() if count > 0}


def waiting_events(starts: Mapping[str, PartitionStart], ends: Mapping[str, int]) -> dict[str, int]:
    """Return the number of events from the start of each partition to its end."""
    return {key: max(0, ends.get(key, 0) - each.number) for key, each in starts.items()}


def next_offset(
    start: StreamOffset,
    starts: Mapping[str, PartitionStart],
    waiting: Mapping[str, int],
    limits: Limits,
    created: str,
    expired: Mapping[str, int],
) -> StreamOffset:
    """Return the end of the next micro-batch; `start` itself if there is nothing to read or tell.

    Args:
        start: the position of the stream.
        starts: where each partition begins.
        waiting: number of events from there on, of each partition; see `waiting_events`.
        limits: maximum size of the micro-batch.
        created: when the hub was created; "" if unknown.
        expired: events of the batch that ends at `start` which had expired when it was run again;
            see `expired_events`.
    """
    counts = limited(limits, waiting)
    reached = {key: each.number + counts[key] for key, each in starts.items()}
    is_known = not start.is_initial and start.is_of(created) and not expired
    if reached == dict(start.next) and is_known:
        return start
    begins = {
        key: each.number
        for key, each in starts.items()
        if start.is_initial or start.next.get(key) != each.number
    }
    lost = Counter(start.lost)
    lost.update(expired)
    lost.update({key: each.lost for key, each in starts.items() if each.lost})
    # Kafka does not report when the hub was created: a batch over it must not forget that time.
    return replace(
        start,
        next=reached,
        begins=begins,
        lost=lost,
        is_initial=False,
        created=created or start.created,
    )


def limited(limits: Limits, waiting: Mapping[str, int]) -> dict[str, int]:
    """Return how many of the waiting events of each partition are read.

    First each partition is limited to its own rate, then the result is cut to the total, see
    `split`.
    """
    counts = dict(waiting)
    for partition, count in waiting.items():
        rate = limits.rates.get(partition, limits.rate)
        counts[partition] = count if rate is None else min(count, rate)
    return counts if limits.total is None else split(limits.total, counts)


def split(total: int, waiting: Mapping[str, int]) -> dict[str, int]:
    """Divide a total in proportion to the waiting events; the shares add up to it exactly.

    Every partition with waiting events gets at least one, so none starves behind a large one. With
    more such partitions than the total allows, this rule takes precedence over the total.
    """
    lagging = {partition: count for partition, count in waiting.items() if count}
    if sum(lagging.values()) <= total:
        return dict(waiting)
    rest = max(0, total - len(lagging))
    further = sum(lagging.values()) - len(lagging)
    shares = {key: divmod(rest * (count - 1), further or 1) for key, count in lagging.items()}
    counts = dict.fromkeys(waiting, 0) | {key: 1 + whole for key, (whole, _) in shares.items()}
    # Largest remainders first; ties keep the order of partitions, so the result is stable.
    by_remainder = sorted(shares, key=lambda key: -shares[key][1])
    for partition in by_remainder[: rest - sum(whole for whole, _ in shares.values())]:
        counts[partition] += 1
    return counts


COLLECT_AFTER = 500_000
"""Threshold of Python's garbage collector: allocations minus deallocations. A task has at most some
100,000 objects, and no event of the client is part of a cycle: collecting after every 700
allocations, Python's default, takes a tenth of the time and finds nothing."""


@dataclass(frozen=True, repr=False)
class RangeTask(InputPartition):
    """Ranges that one Spark task reads. Its `repr` is logged and shows no secret."""

    address: Address
    ranges: tuple[OffsetRange, ...]
    settings: ReadSettings

    def __repr__(self) -> str:
        return f"RangeTask({self.address}, {list(self.ranges)})"


def make_tasks(options: SourceOptions, ranges: Iterable[OffsetRange]) -> list[InputPartition]:
    """Return tasks for the non-empty ranges, of the size that the job has configured."""
    ranges = [each for each in ranges if not each.is_empty]
    if options.min_tasks is not None:
        ranges = divided(ranges, options.min_tasks)
    per_task = options.ranges_per_task
    if per_task is None:
        per_task = max(1, -(-len(ranges) // (options.parallelism or os.cpu_count() or 1)))
    return [
        RangeTask(options.address, tuple(group), options.reading)
        for group in grouped(ranges, per_task)
    ]


MAX_SPLITS = 4
"""Maximum number of tasks that share the range of one partition. The service admits five receivers
of a partition and consumer group, and the receiver of a failed task lingers while its next attempt
begins."""


def divided(ranges: Sequence[OffsetRange], count: int) -> list[OffsetRange]:
    """Return about `count` ranges with the same events, by splitting the large ones.

    Source: Spark's Kafka source, `KafkaOffsetRangeCalculator`, whose `minPartitions` is a hint too.
    """
    total = sum(map(event_count, ranges))
    if len(ranges) >= count or not total:
        return list(ranges)
    parts = []
    for each in ranges:
        begin, size = each.from_sequence_number, event_count(each)
        splits = max(1, min(MAX_SPLITS, size, round(count * size / total)))
        bounds = [begin + size * number // splits for number in range(splits + 1)]
        parts += [OffsetRange(each.partition_id, *bound) for bound in pairwise(bounds)]
    return parts


def grouped(ranges: Iterable[OffsetRange], per_task: int) -> list[list[OffsetRange]]:
    """Return the fewest groups of at most `per_task` ranges each, with about equal events.

    The largest range goes first, always to the group with the fewest events.
    """
    waiting = sorted(ranges, key=lambda each: -event_count(each))
    groups: list[list[OffsetRange]] = [[] for _ in range(-(-len(waiting) // per_task))]
    for each in waiting:
        open_groups = (group for group in groups if len(group) < per_task)
        min(open_groups, key=lambda group: sum(map(event_count, group))).append(each)
    for group in groups:
        group.sort(key=sort_key)
    return sorted(groups, key=lambda group: sort_key(group[0]))


def sort_key(offsets: OffsetRange) -> tuple[int, int]:
    """Return the key by which ranges are in the order of partitions and of events."""
    return int(offsets.partition_id), offsets.from_sequence_number


def event_count(offsets: OffsetRange) -> int:
    """Return the maximum number of events in a range."""
    return offsets.until_sequence_number - offsets.from_sequence_number


CONNECTIONS = KeptConnections[Address, Connection](lambda address: address.connect())


def read_task(partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    """Read the ranges of a task, on an executor.

    One receiver at a time is attached, when its range is read, over the connection that the worker
    process keeps. Memory is that of one range, see `ReadSettings.prefetch`.
    """
    # If there is nothing to read, Spark runs one task that is not a RangeTask.
    if isinstance(partition, RangeTask):
        with collecting_rarely(), CONNECTIONS.lent(partition.address) as connection:
            for each in partition.ranges:
                open_stream = connection.open_stream
                yield from read_range(partition.address, each, partition.settings, open_stream)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage only after `COLLECT_AFTER`; a worker runs one task at a time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
