"""Lists, closing, several callers at once, and a store below that hangs."""

import asyncio
import random
import threading
from typing import Any

import pytest

from eventhub_checkpoints import StoreUnavailableError, every
from eventhub_checkpoints.conformance.harness import race
from simulated_time import POLL
from variants import LONG_SYNC, SIMULATED
from waiting import LIMIT


def test_a_list_shows_what_was_noted(kept) -> None:
    kept.save("0", 7)
    kept.save("1", 8)
    shown = {row["partition_id"]: row["sequence_number"] for row in kept.list_checkpoints()}
    assert shown == {"0": 7, "1": 8}


def test_a_list_writes_what_is_kept_of_its_own_group(kept) -> None:
    other = kept.within(kept.scope._replace(consumer_group="other"))
    kept.save("0", 7)
    other.save("0", 8)
    kept.list_checkpoints()
    assert kept.below.writes == [("write", "0", 7)]
    loud = kept.within(kept.scope._replace(consumer_group="OTHER"))
    assert loud.position("0") == 8


def test_a_list_is_given_where_writing_fails(make) -> None:
    kept = make(write_timeout=0.2)
    kept.save("0", 7)
    kept.below.error = StoreUnavailableError("no answer")
    assert kept.list_checkpoints() == []
    assert not kept.flush()
    kept.below.error = None
    assert kept.position("0") == 7


def test_a_list_ends_while_checkpoints_keep_coming(kept, wait) -> None:
    over = threading.Event()

    def save_all_the_while() -> None:
        number = 0
        while not over.is_set():
            number += 1
            kept.save("0", number)

    async def save_in_a_task() -> None:
        number = 0
        while not over.is_set():
            number += 1
            await kept.store.update_checkpoint(kept.checkpoint("0", number, "1"))
            await asyncio.sleep(0)
            if not number % 100:
                await asyncio.sleep(POLL)

    saving: Any = threading.Thread(target=save_all_the_while)
    if kept.is_aio:
        saving = kept.loop.begin(save_in_a_task())
    else:
        saving.start()
    try:
        wait(lambda: kept.store.stats())
        kept.list_checkpoints()
    finally:
        over.set()
        if kept.is_aio:
            saving.result(LIMIT)
        else:
            saving.join(LIMIT)
    assert len(kept.below.writes) < 5


def test_a_store_is_true_and_has_no_length(kept) -> None:
    assert bool(kept.store)
    for name in ("__len__", "__bool__"):
        assert not hasattr(type(kept.store), name)


def test_closing_writes_what_is_kept_and_leaves_the_store_below_open(kept) -> None:
    kept.save("0", 7)
    for _ in range(3):
        kept.close()
    assert kept.below.writes == [("write", "0", 7)]
    assert not kept.store.store.is_closed
    assert kept.store.healthy()


def test_leaving_the_block_closes(make) -> None:
    kept = make()
    kept.call("__aenter__" if kept.is_aio else "__enter__")
    kept.save("0", 7)
    kept.call("__aexit__" if kept.is_aio else "__exit__", None, None, None)
    assert kept.below.stored() == 7


def test_it_can_be_used_again_after_closing(make, wait) -> None:
    kept = make(every(seconds=0.05))
    for number in range(3):
        kept.save("0", number)
        kept.close()
        assert kept.below.stored() == number
    kept.save("0", 7)
    wait(lambda: kept.below.stored() == 7)
    assert kept.stats().saved == 4


def test_what_could_not_be_written_at_the_close_is_written_when_it_is_used_again(
    make, wait
) -> None:
    kept = make(every(events=1), write_timeout=0.2)
    kept.below.error = StoreUnavailableError("no answer")
    kept.save("0", 7)
    kept.close()
    assert not kept.store.healthy()
    kept.below.error = None
    kept.save("1", 8)
    wait(lambda: (kept.below.stored("0"), kept.below.stored("1")) == (7, 8))


@pytest.mark.parametrize("variant", [SIMULATED, LONG_SYNC], indirect=True)
@pytest.mark.parametrize("forward_only", [True, False])
def test_a_store_below_that_hangs_holds_nobody_for_long(make, wait, forward_only) -> None:
    kept = make(every(events=1), write_timeout=0.5, forward_only=forward_only)
    won = kept.take("0", "me")
    kept.below.gate.clear()
    for partition_id in ("0", "1", *(str(number) for number in range(2, 70))):
        kept.save(partition_id, 7)
    took = [
        kept.seconds(kept.list_checkpoints),
        kept.seconds(kept.flush),
        kept.seconds(kept.list_ownership),
        kept.seconds(lambda: kept.take("70", "me")),
        kept.seconds(lambda: kept.release(won)),
        kept.seconds(kept.close),
    ]
    if kept.is_aio:
        # The list and the claim of others take no time; without the claim of partition 0, a store
        # that may go back is told nothing at its release.
        assert took == [0.5, 0.5, 0.0, 0.0, 0.5 if forward_only else 0.0, 0.5]
    else:
        assert sum(took) < 20, "for 70 partitions one after another, 35 s a call"
    kept.below.gate.set()
    kept.save("70", 8)
    wait(lambda: kept.below.stored("69") == 7)


def test_a_hanging_write_of_one_partition_keeps_no_other_back(make, wait) -> None:
    kept = make(every(events=1))
    kept.below.gate.clear()
    kept.save("0", 7)
    kept.entered()
    kept.below.entered.clear()
    kept.save("1", 8)
    kept.entered()


def test_many_callers_at_once_lose_nothing(make_sync) -> None:
    kept = make_sync(every(events=7), forward_only=False)
    callers, rounds = 8, 200

    def save(caller: int) -> None:
        for number in range(rounds):
            kept.save(str(caller % 4), number)
            if number % 50 == caller:
                kept.list_checkpoints()
                kept.release(kept.proposal("9", "me"))

    race([lambda caller=caller: save(caller) for caller in range(callers)])
    stats = kept.store.stats()
    kept.close()
    assert {key: kept.below.stored(key) for key in "0123"} == dict.fromkeys("0123", rounds - 1)
    assert set(stats) == {*"0123"}


def test_many_tasks_at_once_lose_nothing(make_aio) -> None:
    kept = make_aio(every(events=7), forward_only=False)
    callers, rounds = 8, 200

    async def save(caller: int) -> None:
        for number in range(rounds):
            row = kept.checkpoint(str(caller % 4), number, "1")
            await kept.store.update_checkpoint(row)
            if number % 50 == caller:
                await kept.store.list_checkpoints(*kept.scope)
                await kept.store.claim_ownership([kept.proposal("9", "")])
            await asyncio.sleep(random.choice([0, POLL]))

    async def all_at_once() -> None:
        await asyncio.gather(*map(save, range(callers)))

    kept.loop.finished(all_at_once())
    stats = kept.store.stats()
    kept.close()
    assert {key: kept.below.stored(key) for key in "0123"} == dict.fromkeys("0123", rounds - 1)
    assert set(stats) == {*"0123"}


def test_new_partitions_of_two_threads_are_all_kept(make_sync) -> None:
    kept = make_sync()

    def save(first: int) -> None:
        for number in range(first, first + 100):
            kept.save(str(number), 1)
            kept.release(kept.proposal(str(number + 1000), ""))

    race([lambda first=first: save(first) for first in (0, 0, 100, 100, 200)])
    assert len(kept.store.stats()) == 300
    kept.close()
    assert len(kept.below.rows.checkpoints(kept.scope).rows) == 300


def cancelled(call: Any) -> None:
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        call.result(LIMIT)


@pytest.mark.parametrize("name", ["list_checkpoints", "flush", "close"])
def test_a_call_that_was_cancelled_while_it_writes_loses_nothing(make_aio, name) -> None:
    kept = make_aio()
    kept.save("0", 7)
    kept.below.gate.clear()
    names = kept.scope if name == "list_checkpoints" else ()
    call = kept.begin(name, *names)
    kept.entered()
    cancelled(call)
    kept.save("0", 8)
    kept.below.gate.set()
    assert kept.flush()
    assert kept.below.stored() == 8


def test_a_release_that_was_cancelled_while_it_writes_can_be_made_again(make_aio) -> None:
    kept = make_aio()
    won = kept.take("0", "me")
    kept.save("0", 7)
    kept.below.gate.clear()
    call = kept.begin("claim_ownership", [won | {"owner_id": ""}])
    kept.entered()
    cancelled(call)
    assert kept.owner("0") == "me"
    kept.below.gate.set()
    kept.release(won)
    assert kept.below.calls[-2:] == [("write", "0", 7), ("release", "0")]


def test_a_write_on_purpose_that_was_cancelled_leaves_the_next_one_free(make_aio) -> None:
    kept = make_aio()
    kept.save("0", 10)
    kept.below.gate.clear()
    call = kept.begin("update_checkpoint", kept.checkpoint("0", 5, "500"), force=True)
    kept.entered()
    cancelled(call)
    kept.below.gate.set()
    assert kept.flush()
    assert kept.below.writes == [("write", "0", 10)]
    assert kept.stats().failed == 1
