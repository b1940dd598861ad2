"""A store that is closed, on every backend: it refuses, and late calls leave nothing open."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends import Backend, Place, Variant
from eventhub_checkpoints import Scope, StoreError
from eventhub_checkpoints.conformance.clients import Client, Loop
from waiting import LIMIT, eventually


def open_files() -> int:
    """How many files and connections this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(StoreError) as caught:
        call()
    assert type(caught.value) is StoreError
    return str(caught.value)


def test_a_closed_store_refuses_every_call_but_a_release(
    backend: Backend, shared_place: Place, variant: Variant, loop: Loop, scope: Scope
) -> None:
    client = Client(shared_place.open(variant), scope, loop)
    taken = client.take("0", "me")
    client.close()
    calls: list[Callable[[], Any]] = [
        client.list_ownership,
        client.list_checkpoints,
        partial(client.claim, "1", "me"),
        partial(client.save, "0", 5),
        partial(client.save, "0", 5, force=True),
        partial(client.call, "verify"),
        partial(client.call, "create"),
        partial(client.call, "list_scopes"),
        partial(client.call, "delete_scope", *scope),
        partial(client.call, "delete_partition", *scope, "0"),
    ]
    name = type(client.store).__name__
    assert {refused(call) for call in calls} == {
        f"this {name} is closed: close a store after the client that uses it, and open another "
        "one to go on"
    }
    other = Client(shared_place.open(variant), scope, loop)
    assert other.holder("0") == ("me", taken["etag"])
    client.release(taken)
    assert other.owner("0") == ""
    assert other.saved("0") is None
    other.close()
    client.close()


def is_refused(client: Client) -> bool:
    try:
        client.list_ownership()
    except StoreError as error:
        return "is closed" in str(error)
    return False


def test_a_call_that_is_under_way_ends_before_the_store_is_closed(
    backend: Backend, shared_place: Place, variant: Variant, loop: Loop, scope: Scope
) -> None:
    warm = Client(shared_place.open(variant), scope, loop)  # drivers keep threads and pipes
    assert warm.saved("0") is None
    warm.close()
    before = open_files()
    store = shared_place.open(variant)
    client = Client(store, scope, loop)
    client.set(operation_timeout=LIMIT, write_timeout=LIMIT)
    entered, gate = threading.Event(), threading.Event()
    write: Any = store.write_checkpoint

    def held(*args: Any) -> Any:
        entered.set()
        assert gate.wait(LIMIT)
        return write(*args)

    async def held_task(*args: Any) -> Any:
        entered.set()
        assert await asyncio.to_thread(gate.wait, LIMIT)
        return await write(*args)

    store.write_checkpoint = held if variant == "sync" else held_task
    with ThreadPoolExecutor() as pool:
        try:
            saving = pool.submit(client.save, "0", 5)
            assert entered.wait(LIMIT)
            closing = pool.submit(client.close)
            eventually(partial(is_refused, client))
        finally:
            gate.set()
        saving.result(LIMIT)
        closing.result(LIMIT)
    eventually(lambda: open_files() <= before)
    other = Client(shared_place.open(variant), scope, loop)
    assert other.position("0") == 5
    other.close()


def test_late_releases_leave_nothing_open(
    backend: Backend, shared_place: Place, variant: Variant, loop: Loop, scope: Scope
) -> None:
    store = shared_place.open(variant)
    client = Client(store, scope, loop)
    rows = [client.take(str(number), "me") for number in range(4)]
    client.close()
    before = open_files()
    client.claim_ownership([{**row, "owner_id": ""} for row in rows[:2]])
    client.release(rows[2])
    eventually(lambda: open_files() <= before)
    assert refused(client.list_ownership)
    other = Client(shared_place.open(variant), scope, loop)
    assert [other.owner(row["partition_id"]) for row in rows] == ["", "", "", "me"]
    other.close()


def test_a_late_release_where_the_rows_have_vanished_is_calm(
    backend: Backend, place: Place, variant: Variant, loop: Loop, scope: Scope
) -> None:
    client = Client(place.open(variant), scope, loop)
    taken = client.take("0", "me")
    client.close()
    place.vanish()
    client.release(taken)
    assert refused(client.list_ownership)
