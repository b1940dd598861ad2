"""Positions as sequence numbers: what a hub has to be asked for, and what its properties tell."""

from collections.abc import Iterable, Mapping

from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.hub import ask_each, first_event
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.properties import PartitionProperties


def resolve(
    address: Address,
    positions: Mapping[str, EventPosition],
    found: Mapping[str, PartitionProperties],
    timeout: float,
) -> dict[str, int]:
    """Each position as the sequence number of the first event to read.

    Raises:
        HubUnavailableError: an offset or time had to be looked up, and no event came in time.
    """
    known = {one: at_hand(positions[one], found[one]) for one in positions}
    asked = look_up_each(address, positions, unresolved(known), timeout)
    return {one: asked[one] if number is None else number for one, number in known.items()}


def unresolved(known: Mapping[str, int | None]) -> list[str]:
    """The partitions without a number."""
    return [partition for partition, number in known.items() if number is None]


def look_up_each(
    address: Address,
    positions: Mapping[str, EventPosition],
    partitions: Iterable[str],
    timeout: float,
) -> dict[str, int]:
    """The numbers of the events that the hub delivers first at these positions."""

    def look_up(one: str) -> int:
        position = positions[one]
        start = position.enqueued_time or position.offset or ""
        return first_event(address, one, start, position.inclusive, timeout)

    return ask_each(
        partitions, look_up, timeout + 1, told=lambda ids: f"partition {ids} of {address}"
    )


def at_hand(position: EventPosition, found: PartitionProperties) -> int | None:
    """The sequence number where the partition's properties are enough to tell; else None.

    What lies behind the last event must be told here: a receiver would wait for it for ever.
    """
    if position.sequence_number is not None:
        return position.sequence_number
    if position.is_start_of_stream:
        return found.first_sequence_number
    if position.is_end_of_stream or found.is_empty:
        return found.next_sequence_number
    if position.enqueued_time is not None:
        last = found.last_enqueued_time
        behind = last is not None and position.enqueued_time > last
        return found.next_sequence_number if behind else None
    if position.offset == found.last_enqueued_offset:
        return found.next_sequence_number - position.inclusive
    return None
