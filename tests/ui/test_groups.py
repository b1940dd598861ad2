"""Which groups are shown, and for which request."""

from dataclasses import replace

import pytest

from eventhub_checkpoints import MemoryCheckpointStore
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.groups import ShownGroups

HOST = "ns.servicebus.windows.net"
KEY = "SharedAccessKeyName=app;SharedAccessKey=S3CR3T"


@pytest.fixture
def store() -> MemoryCheckpointStore:
    return MemoryCheckpointStore()


def polled(store: MemoryCheckpointStore, hub: str, group: str = "$Default") -> PolledGroup:
    string = f"Endpoint=sb://{HOST}/;{KEY};EntityPath={hub}"
    return PolledGroup(store, HubAddress.from_connection_string(string, group))


def save(store: MemoryCheckpointStore, hub: str, group: str) -> None:
    row = {"partition_id": "0", "sequence_number": 1, "offset": "1"}
    store.update_checkpoint({**Scope(HOST, hub, group).as_dict(), **row})


def test_groups_are_found_again_and_again(store: MemoryCheckpointStore) -> None:
    groups = ShownGroups([polled(store, "orders"), polled(store, "payments", "Billing")])
    assert [each.scope.consumer_group for each in groups.find()] == ["$Default", "Billing"]
    save(store, "orders", "audit")
    save(store, "orders", "$Default")
    save(store, "elsewhere", "$Default")
    found = {each.scope.consumer_group for each in groups.find()}
    assert found == {"$Default", "audit", "Billing"}
    assert [scope.eventhub_name for scope in groups.others] == ["elsewhere"]


def test_a_group_is_known_in_any_case_and_by_its_request(store: MemoryCheckpointStore) -> None:
    groups = ShownGroups([polled(store, "orders"), polled(store, "payments", "Billing")])
    groups.find()
    billing = groups.of(Scope(HOST.upper(), "PAYMENTS", "billing"))
    assert billing is not None
    assert billing.scope.consumer_group == "Billing"
    assert groups.request_of(billing) == 1
    assert groups.of(Scope(HOST, "payments", "absent")) is None


def test_a_group_that_is_gone_from_the_store_stays(store: MemoryCheckpointStore) -> None:
    save(store, "orders", "$Default")
    save(store, "orders", "audit")
    groups = ShownGroups([polled(store, "orders")])
    groups.find()
    groups.requested = [replace(groups.requested[0], store=MemoryCheckpointStore())]
    assert {each.scope.consumer_group for each in groups.find()} == {"$Default", "audit"}
