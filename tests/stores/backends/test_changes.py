"""Positions are changed, taken from consumers and restored on every backend."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends import Place, Variant
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.operations.change import Force, change_positions
from eventhub_checkpoints.operations.groups import group
from eventhub_checkpoints.operations.positions import Position, read_positions
from eventhub_checkpoints.operations.restore import UndoState, plan_undo
from eventhub_checkpoints.records import Scope
from waiting import LIMIT

# What is done is decided above the stores, with claims and conditional writes, which every backend
# is certified for. So: in memory, and on a backend that claims singly and one that does in batches.
pytestmark = pytest.mark.parametrize("backend", ["memory", "blob", "postgres"], indirect=True)

FORCE = Force("ehcp-test", hold=0.2, timeout=LIMIT)
BACK = {"0": Position(-1, "-1"), "1": Position(5, "149:0:1234"), "2": Position(6, "")}


@pytest.fixture
def consumer(opened: Callable[..., Client], scope: Scope) -> Client:
    """The store of a consumer that has two partitions and has saved 100 in each."""
    client = opened(scope)
    for partition_id in "01":
        client.take(partition_id, "consumer-7")
    client.list_checkpoints()
    for partition_id in "01":
        client.save(partition_id, 100)
    return client


@pytest.fixture
def store(shared_place: Place) -> Iterator[Any]:
    """The store of an operator, which is synchronous."""
    with shared_place.open("sync") as made:
        yield made


def test_positions_are_changed_and_restored(
    consumer: Client, store: Any, scope: Scope, variant: Variant
) -> None:
    for partition_id in "01":
        consumer.release(consumer.row(partition_id))
    kept: list[Any] = []
    change_positions(store, scope, BACK, keep=kept.append)
    present = read_positions(store, scope)
    assert present == BACK
    plan = plan_undo(kept[0], BACK, present, {})
    assert [each.state for each in plan] == [UndoState.RESTORE] * 3
    targets = {each.partition_id: each.former for each in plan}
    change_positions(store, scope, targets, keep=lambda present: None)
    assert read_positions(store, scope) == kept[0] == dict.fromkeys("01", Position(100, "1100"))


def test_partitions_are_taken_from_a_consumer_whose_late_checkpoint_is_overwritten(
    consumer: Client, store: Any, scope: Scope
) -> None:
    late = [101]

    def step(partition_id: str) -> None:
        if partition_id == "2" and late:
            consumer.save("1", late.pop())

    assert [member.owner_id for member in group(store, scope).members] == ["consumer-7"]
    assert change_positions(
        store, scope, BACK, keep=lambda present: None, force=FORCE, progress=step
    )
    assert read_positions(store, scope) == BACK
    assert [consumer.owner(partition_id) for partition_id in "012"] == ["", "", ""]
    # The consumer goes on from there.
    consumer.take_listed("0", "consumer-7")
    consumer.save("0", 0)
    assert consumer.position("0") == 0
