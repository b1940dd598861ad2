"""A hub as users give it, and positions as its sequence numbers."""

from collections.abc import Mapping
from typing import TypeGuard

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    PartitionProperties,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress, read_properties
from eventhub_checkpoints.receive.amqp.paths import explained
from eventhub_checkpoints.receive.hub import ask_each, list_partitions, partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.read_plan import at_hand, resolve
from eventhub_checkpoints.spark.given import answers_at_once

Hub = str | Address | EventHubConsumerClient
"""A connection string with `EntityPath`, a `HubAddress` (or another `Address`), or a client of the
synchronous kind. A client is asked and never closed."""


def address_of(hub: Hub) -> Address | None:
    """The address of a hub; None of a client, which does not tell it.

    Raises:
        ConfigurationError: it is no hub. The message does not show what was given.
    """
    if isinstance(hub, Address):
        return hub
    if isinstance(hub, str):
        return HubAddress.from_connection_string(hub)
    if is_client(hub):
        return None
    raise ConfigurationError(
        f"hub is of type {type(hub).__name__}; expected a connection string, a HubAddress or an "
        "EventHubConsumerClient of the synchronous kind"
    )


def is_client(hub: object) -> TypeGuard[EventHubConsumerClient]:
    """Whether this can be asked as a synchronous client is."""
    return answers_at_once(hub, "get_partition_properties")


def name_of(hub: Hub) -> str:
    """The hub's name as it is typed there."""
    address = address_of(hub)
    if address is not None:
        return address.eventhub_name
    assert is_client(hub)
    return str(hub.eventhub_name)


def ask_partition_ids(hub: Hub, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """The ids of all partitions, in numeric order.

    Raises:
        ConfigurationError: it is no hub, or the namespace has none of this name.
        HubUnavailableError: no answer within `timeout` (s).
    """
    address = address_of(hub)
    if address is not None:
        return list_partitions(address, timeout=timeout)
    assert is_client(hub)
    name = name_of(hub)
    with explained(as_named(name)):
        return ask_each([name], lambda _: sorted(hub.get_partition_ids(), key=int), timeout)[name]


def ask_properties(
    hub: Hub, timeout: float = OPERATION_TIMEOUT
) -> Mapping[str, PartitionProperties]:
    """What each partition of the hub holds; raises as `ask_partition_ids`."""
    address = address_of(hub)
    if address is not None:
        return partition_properties(address, timeout=timeout)
    assert is_client(hub)
    name = name_of(hub)
    # One after another: the client was made by somebody else, and may be in use.
    with explained(as_named(name)):
        return ask_each([name], lambda _: client_properties(hub), timeout)[name]


def as_named(eventhub_name: str) -> HubAddress:
    """The names in errors about a client's hub; a client does not say its namespace."""
    return HubAddress("the namespace of the client", eventhub_name, DEFAULT_CONSUMER_GROUP, "")


def client_properties(client: EventHubConsumerClient) -> dict[str, PartitionProperties]:
    """What a client says about each partition."""
    partitions = sorted(client.get_partition_ids(), key=int)
    return {
        partition: read_properties(partition, client.get_partition_properties(partition))
        for partition in partitions
    }


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
