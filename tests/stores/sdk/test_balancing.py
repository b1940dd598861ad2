"""The SDK's own load balancer over our memory store, round by round."""

import asyncio
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import LoadBalancingStrategy
from azure.eventhub._eventprocessor.ownership_manager import OwnershipManager
from azure.eventhub.aio._eventprocessor._ownership_manager import (
    OwnershipManager as AioOwnershipManager,
)

from eventhub_checkpoints.aio.memory import MemoryCheckpointStore as AioMemoryCheckpointStore
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.stores.memory.rows import MemoryRows

NAMESPACE, HUB, GROUP = "ns.servicebus.windows.net", "orders", "$Default"
PARTITIONS = [str(number) for number in range(8)]
VARIANTS = {
    "sync": (OwnershipManager, MemoryCheckpointStore),
    "aio": (AioOwnershipManager, AioMemoryCheckpointStore),
}


class Hub:
    """As much of a client as the balancer asks for."""

    _address = SimpleNamespace(hostname=NAMESPACE)
    eventhub_name = HUB

    def __init__(self, is_aio: bool) -> None:
        self._is_aio = is_aio

    def get_partition_ids(self) -> Any:
        async def later() -> list[str]:
            return PARTITIONS

        return later() if self._is_aio else PARTITIONS


class Balancer:
    """One owner: the SDK's balancer of either variant, called the same way."""

    def __init__(
        self, variant: str, rows: MemoryRows, owner_id: str, strategy: LoadBalancingStrategy
    ) -> None:
        manager, store = VARIANTS[variant]
        self.store = store(rows)
        self._manager = manager(
            Hub(variant == "aio"), GROUP, owner_id, self.store, 60.0, strategy, None
        )

    def _call(self, name: str, *args: Any) -> Any:
        answer = getattr(self._manager, name)(*args)
        return asyncio.run(finished(answer)) if inspect.isawaitable(answer) else answer

    def round(self) -> set[str]:
        """One round of load balancing: the partitions that are owned after it."""
        return set(self._call("claim_ownership"))

    def release(self, partition_id: str) -> None:
        self._call("release_ownership", partition_id)

    def checkpoints(self) -> Any:
        return self._call("get_checkpoints")


async def finished(answer: Any) -> Any:
    return await answer


@pytest.fixture(params=["sync", "aio"])
def balancer(request: pytest.FixtureRequest) -> Callable[..., Balancer]:
    rows = MemoryRows()

    def make(owner_id: str, strategy: str = "greedy") -> Balancer:
        return Balancer(request.param, rows, owner_id, LoadBalancingStrategy(strategy))

    return make


@pytest.mark.parametrize(("strategy", "rounds"), [("greedy", 1), ("balanced", 8)])
def test_one_owner_takes_all(balancer, strategy, rounds) -> None:
    only = balancer("a", strategy)
    for _ in range(rounds):
        owned = only.round()
    assert owned == set(PARTITIONS)
    assert only.round() == owned


@pytest.mark.parametrize("strategy", ["greedy", "balanced"])
@pytest.mark.parametrize("owners", [2, 4, 8])
def test_owners_come_to_even_shares_and_stay(balancer, strategy, owners) -> None:
    all_owners = [balancer(f"owner-{number}", strategy) for number in range(owners)]
    for _ in range(20):
        owned = [owner.round() for owner in all_owners]
    assert {len(partitions) for partitions in owned} == {len(PARTITIONS) // owners}
    assert set().union(*owned) == set(PARTITIONS)
    assert [owner.round() for owner in all_owners] == owned


def test_a_released_partition_is_taken_by_the_next(balancer) -> None:
    first, second = balancer("a"), balancer("b")
    owned = first.round()
    for partition_id in owned:
        first.release(partition_id)
    assert second.round() == owned


def test_a_release_after_a_renewal_is_the_renewed_one(balancer) -> None:
    first, second = balancer("a"), balancer("b")
    first.round()
    first.round()
    first.release("0")
    first.release("0")  # a second time: it has nothing left to give up
    assert second.round() >= {"0"}


def test_checkpoints_come_by_partition(balancer) -> None:
    one = balancer("a")
    row = {
        "fully_qualified_namespace": NAMESPACE,
        "eventhub_name": HUB,
        "consumer_group": GROUP,
        "partition_id": "3",
        "offset": "12",
        "sequence_number": 7,
    }
    answer = one.store.update_checkpoint(row)
    if inspect.isawaitable(answer):
        asyncio.run(finished(answer))
    assert one.checkpoints() == {"3": row}
