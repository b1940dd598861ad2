"""Positions as sequence numbers: what a hub has to be asked for, and what its properties tell."""

from collections.abc import Iterable, Mapping

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import Address
from eventhub_checkpoints.receive.hub import ask_each, first_event
from eventhub_checkpoints.receive.properties import PartitionProperties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.spark.positions.hubs import Hub, address_of, ask_properties, name_of
from eventhub_checkpoints.spark.positions.position import EventPosition


def numbers_of(
    hub: Hub, positions: Mapping[str, EventPosition], timeout: float = OPERATION_TIMEOUT
) -> dict[str, int]:
    """Each position as the sequence number of the first event to read, asked of the hub.

    Raises:
        ConfigurationError: the hub has no such partition, or an event has to be received and
            only a client was given.
        HubUnavailableError: no answer, or no event, within `timeout` (s) each.
    """
    found = ask_properties(hub, timeout)
    if absent := sorted(positions.keys() - found.keys(), key=int):
        raise ConfigurationError(
            f"hub {name_of(hub)} has no partition {', '.join(absent)}; it has {', '.join(found)}"
        )
    address = address_of(hub)
    if address is not None:
        return resolve(address, positions, found, timeout)
    known = {one: at_hand(position, found[one]) for one, position in positions.items()}
    if unknown := [f"{one} ({positions[one]})" for one in known if known[one] is None]:
        raise ConfigurationError(
            f"an event must be received to resolve partition {', '.join(unknown)}, which a client "
            "that is in use cannot do; give the connection string or a HubAddress as hub"
        )
    return {one: number for one, number in known.items() if number is not None}


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
        behind = position.enqueued_time > found.last_enqueued_time
        return found.next_sequence_number if behind else None
    if position.offset == found.last_enqueued_offset:
        return found.next_sequence_number - position.inclusive
    return None
