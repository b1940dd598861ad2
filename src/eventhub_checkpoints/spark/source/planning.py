"""Ranges of a batch, and of each micro-batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventhub_checkpoints.errors import ConfigurationError, DataLossError
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OffsetRange
from eventhub_checkpoints.receive.read_plan import (
    ahead_of_end,
    expired,
    partition_gone,
    resolve,
    retained,
)
from eventhub_checkpoints.spark.positions.from_store import starting_positions
from eventhub_checkpoints.spark.progress.parsing import StreamOffset
from eventhub_checkpoints.spark.source.limits import Limits
from eventhub_checkpoints.spark.source.options import SourceOptions

Found = Mapping[str, PartitionProperties]


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where one partition begins in the next batch.

    Attributes:
        number: sequence number of the first event.
        lost: how many events before it are gone; None where that cannot be known.
        loss: what to say about it; None where nothing is lost.
    """

    number: int
    lost: int | None = 0
    loss: DataLossError | None = None


def beginning(address: Address, wanted: int | None, found: PartitionProperties) -> Beginning:
    """Hold the next number of a partition against what the hub has.

    A partition that has not been seen begins at its first event. One that holds nothing begins
    at the number that its next event will get, so an empty hub is not taken for a new one.
    """
    first = found.first_sequence_number
    if wanted is None:
        return Beginning(first)
    if wanted < first:
        return Beginning(first, first - wanted, expired(address, wanted, found))
    if wanted > found.next_sequence_number:
        return Beginning(first, None, ahead_of_end(address, wanted, found))
    return Beginning(wanted)


def beginnings(address: Address, start: StreamOffset, found: Found) -> dict[str, Beginning]:
    """Where each partition that the hub has begins in the next batch."""
    return {one: beginning(address, start.next.get(one), held) for one, held in found.items()}


def losses(
    address: Address, start: StreamOffset, found: Found, begun: Mapping[str, Beginning]
) -> Sequence[DataLossError]:
    """What the stream wants and the hub does not have, partitions included."""
    gone = [
        partition_gone(address, one, number, found)
        for one, number in start.next.items()
        if one not in found
    ]
    return [*gone, *(each.loss for each in begun.values() if each.loss)]


def next_offset(
    start: StreamOffset,
    begun: Mapping[str, Beginning],
    ends: Mapping[str, int],
    limits: Limits,
) -> StreamOffset:
    """The end of the next batch; `start` itself where nothing has come.

    Args:
        start: where the stream stands.
        begun: where each partition begins.
        ends: which number each partition may reach; one that is not in it stays where it is.
        limits: how much is taken at once.
    """
    waiting = {one: max(0, ends.get(one, 0) - each.number) for one, each in begun.items()}
    taken = limits.taken(waiting)
    reached = {one: each.number + taken[one] for one, each in begun.items()}
    if reached == dict(start.next) and not start.is_initial:
        return start
    moved = {
        one: each.number
        for one, each in begun.items()
        if start.is_initial or start.next.get(one) != each.number
    }
    return StreamOffset(start.hub, reached, moved, lost_so_far(start, begun))


def lost_so_far(start: StreamOffset, begun: Mapping[str, Beginning]) -> dict[str, int]:
    """The counts of lost events, carried on."""
    counts = {one: start.lost.get(one, 0) + (each.lost or 0) for one, each in begun.items()}
    return {one: count for one, count in ({**start.lost, **counts}).items() if count}


def plan_ranges(options: SourceOptions) -> list[OffsetRange]:
    """The range of each partition that has anything to read.

    Raises:
        ConfigurationError: a position names a partition that the hub does not have, or a range
            ends before it begins.
        DataLossError: a range begins before the first retained event or behind the end.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the checkpoint store could not be asked.
    """
    timeout = options.reading.operation_timeout
    found = partition_properties(options.address, timeout=timeout)
    starts = resolve(options.address, where_to_start(options, found), found, timeout)
    ends = resolve(options.address, where_to_end(options, found), found, timeout)
    ranges = [
        retained(options.address, options.reading, found[one], starts[one], ends[one])
        for one in found
    ]
    return [one for one in ranges if not one.is_empty]


def where_to_start(
    options: SourceOptions, found: Mapping[str, PartitionProperties]
) -> dict[str, EventPosition]:
    """The checkpoint; else the partition's own position; else the one for all."""
    check_named("startingPositions", options.starting_positions, found)
    given = {one: options.starting_positions.get(one, options.starting_position) for one in found}
    if not options.checkpoint_store:
        return given
    scope = options.address.scope(options.checkpoint_group)
    if options.missing == "error":
        # Of a partition that never had an event nothing can be lost.
        given = {one: given[one] for one, held in found.items() if not held.next_sequence_number}
    positions = starting_positions(options.checkpoint_store, scope, list(found), missing=given)
    return dict(positions.positions)


def where_to_end(
    options: SourceOptions, found: Mapping[str, PartitionProperties]
) -> dict[str, EventPosition]:
    """The partition's own position; else the one for all."""
    check_named("endingPositions", options.ending_positions, found)
    return {one: options.ending_positions.get(one, options.ending_position) for one in found}


def check_named(
    name: str, positions: Mapping[str, EventPosition], found: Mapping[str, PartitionProperties]
) -> None:
    """Refuse positions of partitions that the hub does not have."""
    absent = sorted(positions.keys() - found.keys(), key=int)
    if absent:
        raise ConfigurationError(
            f"{name} names partition {', '.join(absent)}; the hub has {', '.join(found)}"
        )
