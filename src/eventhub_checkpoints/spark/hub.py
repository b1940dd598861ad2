"""Queries to a hub that is an address or a client, and positions as sequence numbers."""

from collections.abc import Callable, Mapping
from typing import TypeGuard, TypeVar

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints._shared.settings import require_seconds, require_type
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive import hub as queries
from eventhub_checkpoints.receive.address import Address, PartitionProperties
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.amqp.queries import explained, read_properties
from eventhub_checkpoints.receive.position import EventPosition
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.receive.read_plan import at_hand, resolve
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import scope_of as client_scope
from eventhub_checkpoints.spark.validation import has_sync_method

T = TypeVar("T")

Hub = str | Address | EventHubConsumerClient
"""A connection string with `EntityPath`, a `HubAddress` (or another `Address`), or a synchronous
client, which is used and never closed."""


def address_of(hub: Hub) -> Address | None:
    """Return the address of a hub; None for a client, which does not expose it.

    Raises:
        ConfigurationError: it is not a hub. The message does not show the value.
    """
    if isinstance(hub, str):
        return HubAddress.from_connection_string(hub)
    if isinstance(hub, Address):
        return hub
    require_type(
        "hub",
        hub,
        is_client(hub),
        "a connection string, a HubAddress or an EventHubConsumerClient of the synchronous kind",
    )
    return None


def is_client(hub: object) -> TypeGuard[EventHubConsumerClient]:
    """Return whether this is a synchronous client."""
    return has_sync_method(hub, "get_partition_properties")


def scope_of(hub: Hub) -> Scope:
    """Return the namespace, the hub and the group that are read, with the names as typed.

    The namespace is `UNNAMED` for a client that does not show it.
    """
    address = address_of(hub)
    return client_scope(hub) if address is None else address.scope()


def ask_partition_ids(hub: Hub, timeout: float = OPERATION_TIMEOUT) -> list[str]:
    """Return the ids of all partitions, in numeric order.

    Raises:
        ConfigurationError: it is not a hub, or the namespace has no hub of this name.
        HubUnavailableError: no answer within `timeout` (s).
    """
    require_seconds("timeout", timeout)
    address = address_of(hub)
    if address is not None:
        return queries.list_partitions(address, timeout=timeout)
    assert is_client(hub)
    return _ask_client(hub, lambda: sorted(hub.get_partition_ids(), key=int), timeout)


def ask_properties(
    hub: Hub, timeout: float = OPERATION_TIMEOUT
) -> Mapping[str, PartitionProperties]:
    """Return the properties of each partition of the hub; raises as `ask_partition_ids`."""
    require_seconds("timeout", timeout)
    address = address_of(hub)
    if address is not None:
        return queries.partition_properties(address, timeout=timeout)
    assert is_client(hub)

    # One after another, because the client belongs to the caller and may be in use.
    def read() -> dict[str, PartitionProperties]:
        return {
            partition: read_properties(partition, hub.get_partition_properties(partition))
            for partition in sorted(hub.get_partition_ids(), key=int)
        }

    return _ask_client(hub, read, timeout)


def _ask_client(client: EventHubConsumerClient, ask: Callable[[], T], timeout: float) -> T:
    """Call a client of the caller, within `timeout` (s)."""
    address = HubAddress(*client_scope(client), connection_string="")
    with explained(address):
        return queries.ask_each([str(address)], lambda _: ask(), timeout)[str(address)]


def sequence_numbers(
    hub: Hub, positions: Mapping[str, EventPosition], timeout: float = OPERATION_TIMEOUT
) -> dict[str, int]:
    """Resolve each position to the sequence number of the first event to read.

    Raises:
        ConfigurationError: the hub has no such partition, or an event has to be received and `hub`
            is a client.
        HubUnavailableError: no answer, or no event, within `timeout` (s) each.
    """
    properties = ask_properties(hub, timeout)
    if absent := sorted(positions.keys() - properties.keys(), key=int):
        raise ConfigurationError(
            f"hub {scope_of(hub).eventhub_name} has no partition {', '.join(absent)}; "
            f"it has {', '.join(properties)}"
        )
    address = address_of(hub)
    if address is not None:
        return resolve(address, positions, properties, timeout)
    numbers: dict[str, int] = {}
    unresolved: list[str] = []
    for partition, position in positions.items():
        number = at_hand(position, properties[partition])
        if number is None:
            unresolved.append(f"{partition} ({position})")
        else:
            numbers[partition] = number
    if unresolved:
        raise ConfigurationError(
            f"an event must be received to resolve partition {', '.join(unresolved)}, which a "
            "client that is in use cannot do; pass the connection string or a HubAddress as hub"
        )
    return numbers
