"""Requests to a hub that is an address or a client, and positions as sequence numbers."""

from collections.abc import Mapping
from typing import TypeGuard

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    PartitionProperties,
)
from eventhub_checkpoints.receive.amqp.address import HubAddress, explained, read_properties
from eventhub_checkpoints.receive.hub import ask_each, list_partitions, partition_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.read_plan import at_hand, resolve
from eventhub_checkpoints.spark.given import answers_at_once

Hub = str | Address | EventHubConsumerClient
"""A connection string with `EntityPath`, a `HubAddress` (or another `Address`), or a client of the
synchronous kind. A client is used and never closed."""


def address_of(hub: Hub) -> Address | None:
    """Return the address of a hub; None for a client, which does not expose it.

    Raises:
        ConfigurationError: it is not a hub. The message does not show the value.
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
    """Return whether this is a synchronous client."""
    return answers_at_once(hub, "get_partition_properties")


def name_of(hub: Hub) -> str:
    """Return the hub's name as typed."""
    address = address_of(hub)
    if address is not None:
        return address.eventhub_name
    assert is_client(hub)
    return str(hub.eventhub_name)


def ask_partition_ids(hub: Hub, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """Return the ids of all partitions, in numeric order.

    Raises:
        ConfigurationError: it is not a hub, or the namespace has no hub of this name.
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
    """Return the properties of each partition of the hub; raises as `ask_partition_ids`."""
    address = address_of(hub)
    if address is not None:
        return partition_properties(address, timeout=timeout)
    assert is_client(hub)
    name = name_of(hub)
    # Sequentially, because the client belongs to the caller and may be in use.
    with explained(as_named(name)):
        return ask_each([name], lambda _: client_properties(hub), timeout)[name]


def as_named(eventhub_name: str) -> HubAddress:
    """Return the address for errors about a client's hub, whose namespace is not known."""
    return HubAddress("the namespace of the client", eventhub_name, DEFAULT_CONSUMER_GROUP, "")


def client_properties(client: EventHubConsumerClient) -> dict[str, PartitionProperties]:
    """Return the properties of each partition, as a client reads them."""
    partitions = sorted(client.get_partition_ids(), key=int)
    return {
        partition: read_properties(partition, client.get_partition_properties(partition))
        for partition in partitions
    }


def numbers_of(
    hub: Hub, positions: Mapping[str, EventPosition], timeout: float = OPERATION_TIMEOUT
) -> dict[str, int]:
    """Resolve each position to the sequence number of the first event to read.

    Raises:
        ConfigurationError: the hub has no such partition, or an event has to be received and `hub`
            is a client.
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
