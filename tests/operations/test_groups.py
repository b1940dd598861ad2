"""Which groups are polled for an operator who names hubs, or groups of them."""

from dataclasses import replace

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.operations.monitor import PolledGroup, groups_to_poll
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.records import Scope

HOST = "NS.servicebus.windows.net"
ORDERS, REPORTS, OTHER = (
    Scope(HOST, "Orders", "$Default"),
    Scope(HOST, "Orders", "reports"),
    Scope(HOST, "invoices", "$Default"),
)


@pytest.fixture
def store() -> MemoryCheckpointStore:
    """A store with two groups of one hub, and one of another."""
    store = MemoryCheckpointStore()
    for scope in (ORDERS, REPORTS, OTHER):
        row = {"partition_id": "0", "sequence_number": 1, "offset": "1"}
        store.update_checkpoint({**scope.as_dict(), **row})
    return store


def polled(store: MemoryCheckpointStore, scope: Scope) -> PolledGroup:
    """Return a group as an operator names it, with settings of its own."""
    namespace, hub, group = scope
    key = "SharedAccessKeyName=app;SharedAccessKey=S3CR3T"
    string = f"Endpoint=sb://{namespace}/;{key};EntityPath={hub}"
    address = HubAddress.from_connection_string(string, group)
    return PolledGroup(store, address, "latest", timeout=7.0, through="audit")


def folded(groups: list[PolledGroup]) -> set[Scope]:
    return {each.scope.folded for each in groups}


def test_a_hub_stands_for_all_of_its_groups(store: MemoryCheckpointStore) -> None:
    [chosen], others = groups_to_poll([polled(store, ORDERS)])
    assert folded(chosen) == {ORDERS.folded, REPORTS.folded}
    assert ORDERS in [each.scope for each in chosen], "spelled as the operator did"
    assert [scope.folded for scope in others] == [OTHER.folded]


def test_a_group_of_a_hub_is_polled_with_the_settings_of_the_one_that_was_named(
    store: MemoryCheckpointStore,
) -> None:
    [chosen], _ = groups_to_poll([polled(store, ORDERS)])
    address = replace(polled(store, ORDERS).hub, consumer_group="reports")
    assert replace(polled(store, ORDERS), hub=address) in chosen


def test_a_group_stands_for_itself(store: MemoryCheckpointStore) -> None:
    chosen, _ = groups_to_poll([polled(store, REPORTS)])
    assert chosen == [[polled(store, REPORTS)]]


def test_a_group_is_polled_once_for_the_first_who_names_it(store: MemoryCheckpointStore) -> None:
    requested = [polled(store, scope) for scope in (REPORTS, ORDERS, OTHER)]
    chosen, others = groups_to_poll(requested)
    assert [folded(each) for each in chosen] == [{REPORTS.folded}, {ORDERS.folded}, {OTHER.folded}]
    assert others == []


def test_a_hub_that_the_store_does_not_know_is_polled_as_named() -> None:
    named = polled(MemoryCheckpointStore(), ORDERS)
    assert groups_to_poll([named]) == ([[named]], [])
