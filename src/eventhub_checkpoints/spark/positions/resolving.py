"""Positions of a hub as users give it, as sequence numbers."""

from collections.abc import Mapping

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.resolving import at_hand, resolve
from eventhub_checkpoints.spark.positions.hubs import Hub, address_of, ask_properties, name_of


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
