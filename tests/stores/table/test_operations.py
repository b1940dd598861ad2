"""A group is mirrored, and moved, between a table and every other store, in both directions."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends import BACKENDS, Backend, Place
from eventhub_checkpoints.operations.groups import FENCE
from eventhub_checkpoints.operations.mirror import Mirror
from eventhub_checkpoints.operations.move import Move
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.records import Scope

PROMPT = ("memory", "sqlite", "blob")
OTHERS = [
    name if name in PROMPT else pytest.param(name, marks=pytest.mark.long) for name in BACKENDS
]
IDS = ["0", "1", "2"]
START = {"0": Position(15, "149:0:1500"), "1": Position(4)}
"""Partition 2 has no checkpoint."""


@pytest.fixture(params=["from", "to"])
def stores(
    request: pytest.FixtureRequest, backend: Backend, servers: Callable[[str], Backend]
) -> Iterator[tuple[Any, Any]]:
    """A store with positions, and an empty one; one of them is a table."""
    with servers("table").place() as table, backend.place() as other:
        places: list[Place] = [table, other] if request.param == "from" else [other, table]
        with places[0].open("sync") as source, places[1].open("sync") as target:
            yield source, target


def saved(store: Any, scope: Scope) -> dict[str, Position]:
    return {row["partition_id"]: Position.of(row) for row in store.list_checkpoints(*scope)}


def owners(store: Any, scope: Scope) -> list[str]:
    return [row["owner_id"] for row in store.list_ownership(*scope)]


@pytest.mark.parametrize("backend", OTHERS, indirect=True)
def test_a_group_is_mirrored(stores: tuple[Any, Any], scope: Scope) -> None:
    source, target = stores
    for partition_id, position in START.items():
        source.update_checkpoint(position.as_dict(scope, partition_id))
    Mirror(source, target, scope).copy()
    assert saved(target, scope) == saved(source, scope) == START


@pytest.mark.parametrize("backend", OTHERS, indirect=True)
def test_a_group_is_moved(stores: tuple[Any, Any], scope: Scope) -> None:
    source, target = stores
    for partition_id, position in START.items():
        source.update_checkpoint(position.as_dict(scope, partition_id))
    assert source.claim_ownership(
        [{**scope.as_dict(), "partition_id": "0", "owner_id": "consumer", "etag": None}]
    )
    move = Move(source, target, scope, IDS, settle=0.0)
    assert [*move.run(0.001, threading.Event())][-1].is_done
    assert saved(target, scope) == START
    assert set(owners(target, scope)) <= {""}
    assert all(position.is_closed for position in saved(source, scope).values())
    assert all(owner.startswith(FENCE) for owner in owners(source, scope))
