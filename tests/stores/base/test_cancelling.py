"""A task that is cancelled in the middle of a call leaves the store as good as before.

The client cancels a running `on_event` when it stops or loses the partition.
"""

from asyncio import CancelledError
from typing import Any

import pytest

from eventhub_checkpoints import StaleCheckpointError


def row(**fields: Any) -> dict[str, Any]:
    return {
        "fully_qualified_namespace": "ns.servicebus.windows.net",
        "eventhub_name": "orders",
        "consumer_group": "$Default",
        "partition_id": "0",
    } | fields


def cancelled(store: Any, call: Any, entered: Any) -> None:
    """Cancel a call once its hook was entered."""
    store.until(entered)
    assert call.cancel()
    with pytest.raises(CancelledError):
        store.ended(call)


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_write_leaves_the_next_one_free(aio_store, make_fault, carried_out) -> None:
    aio_store.update(1)
    fault = make_fault(hangs=True, carried_out=carried_out)
    aio_store.faults.plan("write_checkpoint", fault)
    cancelled(aio_store, aio_store.begin_update(5), fault.entered)
    assert aio_store.stored() == (5 if carried_out else 1)
    aio_store.update(3)  # its own row of 5 is no other writer's
    assert aio_store.stored() == 3


def test_a_write_that_was_cancelled_before_it_began_changes_nothing(
    aio_store, make_fault, gate
) -> None:
    first = aio_store.faults.plan("write_checkpoint", make_fault(gate=gate))
    running = aio_store.begin_update(5)
    aio_store.until(first.entered)
    waiting = aio_store.begin_update(6)
    aio_store.let_pass(1)
    waiting.cancel()
    gate.set()
    aio_store.ended(running)
    assert aio_store.faults.count("write_checkpoint") == 1
    aio_store.update(7)
    assert aio_store.stored() == 7


def test_another_writers_row_is_still_respected_after_a_cancelled_write(
    aio_store, make_fault
) -> None:
    aio_store.update(1)
    hung = aio_store.faults.plan("write_checkpoint", make_fault(hangs=True))
    cancelled(aio_store, aio_store.begin_update(5), hung.entered)
    aio_store.official_write(100)
    with pytest.raises(StaleCheckpointError):
        aio_store.update(6)


def test_a_list_during_a_write_that_is_cancelled_takes_it_for_its_own(
    aio_store, make_fault, gate
) -> None:
    aio_store.take()
    aio_store.list_checkpoints()
    slow = aio_store.faults.plan("write_checkpoint", make_fault(gate=gate))
    call = aio_store.begin_update(5)
    aio_store.until(slow.entered)
    aio_store.list_checkpoints()
    call.cancel()
    gate.set()
    aio_store.list_checkpoints()
    aio_store.update(3)
    assert aio_store.stored() == 3


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_claim_that_was_cancelled_can_be_made_again(aio_store, make_fault, carried_out) -> None:
    fault = make_fault(hangs=True, carried_out=carried_out)
    aio_store.faults.plan("try_claim", fault)
    cancelled(aio_store, aio_store.begin("claim_ownership", [row(owner_id="me")]), fault.entered)
    rows = aio_store.list_ownership()
    assert len(rows) == carried_out
    won = aio_store.take(etag=rows[0]["etag"] if rows else "")
    aio_store.list_checkpoints()
    aio_store.update(5)
    assert len(aio_store.claim(won | {"owner_id": ""})) == 1


def test_a_batch_that_was_cancelled_leaves_no_claim_running(aio_store, make_fault) -> None:
    hung = aio_store.faults.always["try_claim"] = make_fault(hangs=True)
    batch = [row(owner_id="me", partition_id=str(number)) for number in range(8)]
    cancelled(aio_store, aio_store.begin("claim_ownership", batch), hung.entered)
    assert aio_store.faults.running == 0


def test_a_release_that_was_cancelled_can_be_made_again(aio_store, make_fault) -> None:
    won = aio_store.take()
    hung = aio_store.faults.plan("try_claim", make_fault(hangs=True))
    cancelled(aio_store, aio_store.begin("claim_ownership", [won | {"owner_id": ""}]), hung.entered)
    assert len(aio_store.claim(won | {"owner_id": ""})) == 1
    aio_store.update(5)


def test_an_opening_that_was_cancelled_is_made_again(aio_store, make_fault) -> None:
    hung = aio_store.faults.plan("open", make_fault(hangs=True))
    cancelled(aio_store, aio_store.begin_update(5), hung.entered)
    aio_store.update(5)
    assert aio_store.faults.count("open") == 2


def test_a_store_serves_one_event_loop_after_another(aio_store) -> None:
    aio_store.update(1)
    with aio_store.another_loop():
        aio_store.update(2)
    aio_store.update(3)
    assert aio_store.stored() == 3
