"""From where a stream stands to the end of its next batch: what was asked, decided.

Pure functions over what the hub has told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eventhub_checkpoints.errors import DataLossError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.loss import ahead_of_end, expired, partition_gone
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.spark.progress.stream_offset import StreamOffset
from eventhub_checkpoints.spark.source.limits import Limits

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
