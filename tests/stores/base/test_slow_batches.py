"""A batch in which one claim hangs: the others were won long before it ends."""

import asyncio
import threading
from typing import Any

import pytest

from eventhub_checkpoints import StoreError, StoreUnavailableError
from eventhub_checkpoints.base import seconds_left
from simulated_time import EPOCH, stall

SCOPE = {
    "fully_qualified_namespace": "ns.servicebus.windows.net",
    "eventhub_name": "orders",
    "consumer_group": "$Default",
}
LIMIT = 10.0


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


def test_a_claim_is_as_old_as_its_question(make_aio, make_fault) -> None:
    store = make_aio(operation_timeout=LIMIT)
    hang_one(store, make_fault)
    store.faults.plan("try_claim", make_fault(seconds=1))  # its row is a second younger
    with store.takes(LIMIT):
        (won,) = store.claim(row("0"), row("1"))
    assert won["last_modified_time"] == EPOCH


def test_a_recognised_claim_is_as_old_as_its_row(make_aio, make_fault) -> None:
    store = make_aio()
    store.faults.plan("try_claim", make_fault(seconds=1, error=TimeoutError(), carried_out=True))
    (won,) = store.claim(row("0"))
    assert won["last_modified_time"] == EPOCH + 1


@pytest.mark.parametrize(("keep", "kept"), [(LIMIT + 2.0, ["0"]), (LIMIT + 1.0, [])])
def test_a_renewal_is_not_kept_longer_after_a_slow_batch(make_aio, make_fault, keep, kept) -> None:
    store = make_aio(operation_timeout=LIMIT, keep_unconfirmed=keep)
    hang_one(store, make_fault)
    won = store.claim(row("0"), row("1"))  # confirmed `LIMIT` ago
    store.faults.always["try_claim"] = make_fault(hangs=True)
    store.limit(operation_timeout=1.0)
    assert [one["partition_id"] for one in store.claim(*won)] == kept


def test_a_release_during_a_batch_uses_the_etag_that_was_just_won(make_aio, make_fault) -> None:
    store = make_aio()
    won = store.claim(row("0"), row("1"))
    hung = hang_one(store, make_fault)
    batch = store.begin("claim_ownership", won)
    store.until(hung.entered)
    store.let_pass(1.0)
    assert len(store.claim(won[0] | {"owner_id": ""})) == 1
    store.ended(batch)
    assert store.owner("0") == ""


def test_a_batch_that_is_cancelled_remembers_what_it_has_won(aio_store, make_fault) -> None:
    won = aio_store.claim(row("0"), row("1"))
    hung = hang_one(aio_store, make_fault)
    batch = aio_store.begin("claim_ownership", won)
    aio_store.until(hung.entered)
    aio_store.let_pass(1.0)
    batch.cancel()
    assert len(aio_store.claim(won[0] | {"owner_id": ""})) == 1


def test_a_batch_keeps_what_it_has_won_where_the_process_stalls_until_its_end(
    aio_store,
) -> None:
    begin = aio_store.store.try_claim

    def try_claim(proposal: Any) -> Any:
        if proposal.partition_id == "1":
            stall(1.1 * LIMIT)  # the event loop runs nothing else meanwhile
        return begin(proposal)

    aio_store.store.try_claim = try_claim
    aio_store.limit(operation_timeout=LIMIT)
    won = [one["partition_id"] for one in aio_store.claim(row("0"), row("1"), row("2"))]
    # What began after the stall was given up without a request.
    assert won == [number for number in "012" if aio_store.owner(number) == "me"] == ["0", "1"]


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


def test_a_batch_that_is_too_large_for_its_time_keeps_what_it_has_won(make_aio, make_fault) -> None:
    store = make_aio(operation_timeout=LIMIT, max_concurrency=8)
    store.faults.always["try_claim"] = make_fault(seconds=2.0)
    with store.takes(LIMIT):
        won = store.claim(*[row(str(number)) for number in range(400)])
    assert len(won) == len(store.list_ownership()) == 8 * (LIMIT // 2.0 - 1)


def test_a_batch_of_a_backend_that_hangs_is_cut_off(timed, monkeypatch) -> None:
    store = timed_store = timed(operation_timeout=2.0)

    async def hangs_aio(store: Any, proposals: Any) -> Any:
        await asyncio.sleep(60)

    def hangs(store: Any, proposals: Any) -> Any:
        timed_store.let_pass(seconds_left())  # a sync driver is told how long it may take
        raise TimeoutError

    monkeypatch.setattr(type(store.store), "try_claims", hangs_aio if store.is_aio else hangs)
    # A driver that is told has nine tenths of the time, and of the rest nine tenths once more.
    with store.takes(2.0 if store.is_aio else 1.9):
        assert store.claim(row("0"), row("1")) == []


def test_a_backend_has_the_time_to_tell_which_of_a_batch_have_won(make_aio, monkeypatch) -> None:
    store = make_aio(operation_timeout=LIMIT)

    async def half(store: Any, proposals: Any) -> Any:
        answers = [await store.try_claim(proposals[0])]
        await asyncio.sleep(seconds_left())
        return [*answers, *[StoreUnavailableError("no time was left")] * (len(proposals) - 1)]

    monkeypatch.setattr(type(store.store), "try_claims", half)
    assert [one["partition_id"] for one in store.claim(row("0"), row("1"), row("2"))] == ["0", "1"]
