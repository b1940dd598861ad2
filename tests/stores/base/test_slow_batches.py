"""A batch in which one claim hangs: the others were won long before it ends."""

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from eventhub_checkpoints import StoreError
from eventhub_checkpoints.base import seconds_left

pytestmark = pytest.mark.waits

SCOPE = {
    "fully_qualified_namespace": "ns.servicebus.windows.net",
    "eventhub_name": "orders",
    "consumer_group": "$Default",
}
LIMIT = 1.0


def row(partition_id: str) -> dict[str, Any]:
    return SCOPE | {"partition_id": partition_id, "owner_id": "me"}


def hang_one(subject: Any, make_fault: Any) -> Any:
    """Let every claim of partition 1 hang from now on; the fault tells when the first does."""
    fault = make_fault(hangs=True)
    begin = subject.store.try_claim

    def try_claim(proposal: Any) -> Any:
        if proposal.partition_id == "1":
            subject.faults.plan("try_claim", fault)
        return begin(proposal)

    subject.store.try_claim = try_claim
    return fault


@pytest.fixture
def slow(make) -> Any:
    return make(operation_timeout=LIMIT, write_timeout=LIMIT, keep_unconfirmed=LIMIT / 2)


def claims_begun(subject: Any) -> list[tuple[str, float]]:
    """Partitions of the claims that are begun from now on, and the times."""
    begun: list[tuple[str, float]] = []
    begin = subject.store.try_claim

    def try_claim(proposal: Any) -> Any:
        begun.append((proposal.partition_id, time.time()))
        return begin(proposal)

    subject.store.try_claim = try_claim
    return begun


def test_a_claim_is_as_old_as_its_question(slow, make_fault) -> None:
    hang_one(slow, make_fault)
    begun = claims_begun(slow)
    began = time.time()
    (won,) = slow.claim(row("0"), row("1"))
    assert time.time() - began > LIMIT / 2
    assert began <= won["last_modified_time"] <= dict(begun)["0"]


def test_a_recognised_claim_is_as_old_as_its_row(slow, make_fault) -> None:
    slow.faults.plan("try_claim", make_fault(error=TimeoutError(), carried_out=True))
    begun = claims_begun(slow)
    began = time.time()
    (won,) = slow.claim(row("0"))
    (_, first), (_, second) = begun
    assert began <= first <= won["last_modified_time"] < second


def test_a_renewal_is_not_kept_longer_after_a_slow_batch(slow, make_fault) -> None:
    hang_one(slow, make_fault)
    won = slow.claim(row("0"), row("1"))  # confirmed more than `keep_unconfirmed` ago
    slow.faults.always["try_claim"] = make_fault(error=TimeoutError())
    slow.store.settings = replace(slow.store.settings, operation_timeout=LIMIT / 10)
    assert slow.claim(*won) == []


def test_a_release_during_a_batch_uses_the_etag_that_was_just_won(slow, make_fault) -> None:
    won = slow.claim(row("0"), row("1"))
    hung = hang_one(slow, make_fault)
    batch = threading.Thread(target=slow.claim, args=won)
    batch.start()
    assert hung.entered.wait(5)
    while slow.faults.count("try_claim") < len(won) + 2:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(slow.claim(won[0] | {"owner_id": ""})) == 1
    batch.join()
    assert slow.owner("0") == ""


def test_a_batch_that_is_cancelled_remembers_what_it_has_won(aio_store, make_fault) -> None:
    won = aio_store.claim(row("0"), row("1"))
    hung = hang_one(aio_store, make_fault)
    batch = aio_store.begin("claim_ownership", won)
    assert hung.entered.wait(5)
    time.sleep(0.05)
    batch.cancel()
    assert len(aio_store.claim(won[0] | {"owner_id": ""})) == 1


def test_a_batch_keeps_what_it_has_won_where_the_process_stalls_until_its_end(slow) -> None:
    begin = slow.store.try_claim

    def try_claim(proposal: Any) -> Any:
        if proposal.partition_id == "1":
            time.sleep(1.1 * LIMIT)  # an event loop runs nothing else meanwhile
        return begin(proposal)

    slow.store.try_claim = try_claim
    won = [one["partition_id"] for one in slow.claim(row("0"), row("1"), row("2"))]
    assert "0" in won
    assert won == [number for number in "012" if slow.owner(number) == "me"]


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("make", ["sync"], indirect=True)
def test_claims_raise_our_errors_where_no_thread_can_be_started(make, monkeypatch) -> None:
    store = make()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(StoreError, match="can't start new thread"):
        store.claim(row("0"), row("1"))


def test_releases_are_calm_where_no_thread_can_be_started(make, monkeypatch, caplog) -> None:
    store = make()
    won = store.claim(row("0"), row("1"))

    if not store.is_aio:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    released = store.claim(*[one | {"owner_id": ""} for one in won])
    assert len(released) == 2 or "can't start new thread" in caplog.text


def test_a_batch_that_is_too_large_for_its_time_keeps_what_it_has_won(make, make_fault) -> None:
    # A batch ends at nine tenths of its time: what is left must outlast a stall of the machine.
    store = make(operation_timeout=12 * LIMIT, max_concurrency=8)
    store.faults.always["try_claim"] = make_fault(seconds=LIMIT / 2)
    won = store.claim(*[row(str(number)) for number in range(400)])
    # On a busy machine one may be carried out and cut off before it is known: an unknown outcome.
    assert 8 <= len(won) <= len(store.list_ownership())


def test_a_batch_of_a_backend_that_hangs_is_cut_off(slow, monkeypatch) -> None:
    async def hangs_aio(store: Any, proposals: Any) -> Any:
        await asyncio.sleep(60)

    def hangs(store: Any, proposals: Any) -> Any:
        time.sleep(seconds_left())  # a sync driver is told how long it may take
        raise TimeoutError

    kind = type(slow.store)
    monkeypatch.setattr(kind, "try_claims", hangs_aio if slow.is_aio else hangs)
    began = time.monotonic()
    assert slow.claim(row("0"), row("1")) == []
    assert LIMIT / 2 < time.monotonic() - began < 10 * LIMIT
