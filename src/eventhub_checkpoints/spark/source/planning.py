"""Planning of the ranges of a batch, and of each micro-batch."""

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
    """Start of one partition in the next batch.

    Attributes:
        number: sequence number of the first event.
        lost: number of lost events before it; None if it cannot be determined.
        loss: error that describes the loss; None if nothing is lost.
    """

    number: int
    lost: int | None = 0
    loss: DataLossError | None = None


def beginning(address: Address, wanted: int | None, found: PartitionProperties) -> Beginning:
    """Compare the next number of a partition with what the hub has.

    A new partition begins at its first event. An empty partition begins at the number that its next
    event will get, so an empty hub is not mistaken for one that was created again.
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
    """Return where each partition of the hub begins in the next batch."""
    return {one: beginning(address, start.next.get(one), held) for one, held in found.items()}


def losses(
    address: Address, start: StreamOffset, found: Found, begun: Mapping[str, Beginning]
) -> Sequence[DataLossError]:
    """Return an error for each loss: events and partitions that the hub no longer has."""
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
    """Return the end of the next batch; `start` itself if there are no new events.

    Args:
        start: the position of the stream.
        begun: where each partition begins.
        ends: maximum end of each partition; a partition that is not in it does not advance.
        limits: maximum size of the batch.
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
    """Return the accumulated counts of lost events."""
    counts = {one: start.lost.get(one, 0) + (each.lost or 0) for one, each in begun.items()}
    return {one: count for one, count in ({**start.lost, **counts}).items() if count}


def plan_ranges(options: SourceOptions) -> list[OffsetRange]:
    """Return the range of each partition that has anything to read.

    Raises:
        ConfigurationError: a position names a partition that the hub does not have, or a range
            ends before it begins.
        DataLossError: a range begins before the first retained event or after the end.
        HubUnavailableError: the hub did not answer in time.
        StoreError: the checkpoint store could not be read.
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
    """Return the checkpoint; else the partition's own position; else the default."""
    check_named("startingPositions", options.starting_positions, found)
    given = {one: options.starting_positions.get(one, options.starting_position) for one in found}
    if not options.checkpoint_store:
        return given
    scope = options.address.scope(options.checkpoint_group)
    if options.missing == "error":
        # A partition that never had an event has no checkpoint, and nothing to lose.
        given = {one: given[one] for one, held in found.items() if not held.next_sequence_number}
    positions = starting_positions(options.checkpoint_store, scope, list(found), missing=given)
    return dict(positions.positions)


def where_to_end(
    options: SourceOptions, found: Mapping[str, PartitionProperties]
) -> dict[str, EventPosition]:
    """Return the partition's own position; else the default."""
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
