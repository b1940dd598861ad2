"""Which groups are polled for an operator who names hubs, or groups of them."""

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.operations.groups import groups_to_poll
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


def test_a_hub_stands_for_all_of_its_groups(store: MemoryCheckpointStore) -> None:
    chosen, others = groups_to_poll([(store, ORDERS)])
    assert {(number, scope.folded) for number, scope in chosen} == {
        (0, ORDERS.folded),
        (0, REPORTS.folded),
    }
    assert ORDERS in [scope for _, scope in chosen], "spelled as the operator did"
    assert [scope.folded for scope in others] == [OTHER.folded]


def test_a_group_stands_for_itself(store: MemoryCheckpointStore) -> None:
    chosen, _ = groups_to_poll([(store, REPORTS)])
    assert chosen == [(0, REPORTS)]


def test_a_group_is_polled_once_for_the_first_who_names_it(store: MemoryCheckpointStore) -> None:
    chosen, others = groups_to_poll([(store, REPORTS), (store, ORDERS), (store, OTHER)])
    assert {(number, scope.folded) for number, scope in chosen} == {
        (0, REPORTS.folded),
        (1, ORDERS.folded),
        (2, OTHER.folded),
    }
    assert others == []


def test_a_hub_that_the_store_does_not_know_is_polled_as_named() -> None:
    assert groups_to_poll([(MemoryCheckpointStore(), ORDERS)]) == ([(0, ORDERS)], [])
