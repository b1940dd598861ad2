"""How a member ends: what it releases, which threads it leaves, and what a signal does."""

import asyncio
import gc
import signal
import sys
import threading
from pathlib import Path

import pytest

import eventhub_checkpoints
from arrow_rows import numbers, take
from arrow_variants import ALL, FAST, PATHS
from eventhub_checkpoints import open_store
from eventhub_checkpoints.aio.arrow import consume_batches
from eventhub_checkpoints.arrow import HubAddress
from running import Running
from waiting import LIMIT, eventually

OWN = ("consume-batches", "partition-", "read-batches", "receive-")


def own_threads():
    return [each.name for each in threading.enumerate() if each.name.startswith(OWN)]


# Close


@PATHS
def test_a_member_that_is_closed_leaves_no_thread_no_receiver_and_no_owner(
    variant, address, hub, kept, receive_path
):
    settings = {"store": kept.url, "receive_path": receive_path, **FAST}
    with variant.consume_batches(address, **settings) as batches:
        next(batches)
        assert own_threads()
        assert len(kept.owners()) == 3
    assert kept.owners() == {}
    assert [*batches] == []
    eventually(lambda: not own_threads())
    eventually(lambda: not hub.receivers("orders") and not hub.connections())


def test_a_member_that_has_never_asked_for_a_batch_leaves_nothing(variant, address, hub, kept):
    with variant.consume_batches(address, store=kept.url, **FAST) as batches:
        pass
    assert [*batches] == []
    batches.close()
    assert not own_threads()
    assert not hub.connections()
    assert kept.owners() == {}


def test_a_member_without_a_batch_is_closed_as_soon(member, hub, kept):
    hub.recreate("orders", 3)
    reader = member().start()
    eventually(lambda: len(reader.held) == 3)
    reader.stop()
    assert kept.owners() == {}
    assert reader.error is None
    eventually(lambda: not own_threads())


def test_closing_ends_the_wait_of_another_thread_and_closes_once(variant, hub, address, kept):
    hub.recreate("orders", 3)
    batches = variant.consume_batches(address, store=kept.url, **FAST)
    ended = []
    reader = threading.Thread(target=lambda: ended.append([*batches]))
    reader.start()
    eventually(lambda: len(kept.owners()) == 3)
    batches.close()
    reader.join(LIMIT)
    assert ended == [[]]
    batches.close()


def test_what_waits_to_be_taken_is_dropped_and_comes_again(variant, address, kept, hub):
    hub.publish("orders", "2", ["event"] * 90)
    settings = {"store": kept.url, "max_rows": 10, **FAST}
    with variant.consume_batches(address, **settings) as batches:
        next(batches)
        batches.commit()
        # Each partition has its next batch ready.
        inbox = variant.inner(batches)._inbox
        eventually(lambda: len(inbox._items) >= 2)
    (number,) = kept.numbers().values()
    assert number == 9
    with variant.consume_batches(address, **settings) as batches:
        found = numbers(take(batches, 290))
        (partition,) = kept.numbers()
        assert found[partition][0] == 10


def test_closing_while_the_hub_is_asked_ends_the_wait(variant, text, kept):
    asked, answer = threading.Event(), threading.Event()

    class Slow(HubAddress):
        def open_queries(self):
            asked.set()
            assert answer.wait(LIMIT)
            return HubAddress.open_queries(self)

    batches = variant.consume_batches(Slow.from_connection_string(text), store=kept.url, **FAST)
    ended = []
    reader = threading.Thread(target=lambda: ended.append([*batches]))
    reader.start()
    assert asked.wait(LIMIT)
    closing = threading.Thread(target=batches.close)
    closing.start()
    reader.join(LIMIT)
    assert ended == [[]]
    answer.set()
    closing.join(LIMIT)
    assert not closing.is_alive()
    assert kept.owners() == {}


def test_a_partition_that_is_claimed_while_it_is_closed_is_released(
    variant, address, kept, monkeypatch
):
    """Its next owner would have to wait until it expires."""
    claimed, go_on = threading.Event(), threading.Event()
    store = variant.memory_store()
    claim = store.claim_ownership

    def held_up(result):
        claimed.set()
        assert go_on.wait(LIMIT)
        return result

    if variant.is_async:

        async def claim_ownership(rows, **kwargs):
            return await asyncio.to_thread(held_up, await claim(rows, **kwargs))

    else:

        def claim_ownership(rows, **kwargs):
            return held_up(claim(rows, **kwargs))

    monkeypatch.setattr(store, "claim_ownership", claim_ownership)
    batches = variant.consume_batches(address, store=store, **FAST)
    reader = threading.Thread(target=lambda: [*batches])
    reader.start()
    assert claimed.wait(LIMIT)
    closing = threading.Thread(target=batches.close)
    closing.start()
    reader.join(LIMIT)
    go_on.set()
    closing.join(LIMIT)
    assert not closing.is_alive()
    rows = variant.finished(store.list_ownership(*address.scope()))
    assert [row["owner_id"] for row in rows] == [""] * 3
    variant.close(store)


def test_a_store_of_a_url_is_closed_with_the_batches_and_a_store_that_was_passed_is_not(
    variant, address, kept, monkeypatch
):
    store = variant.open_store("memory:")
    closed = []
    close = type(store).close

    def noted(self):
        closed.append(self)
        return close(self)

    monkeypatch.setattr(type(store), "close", noted)
    with variant.consume_batches(address, store=store, **FAST) as batches:
        next(batches)
    assert closed == []
    with variant.consume_batches(address, store="memory:other", **FAST) as batches:
        next(batches)
    assert len(closed) == 1
    variant.close(store)


def test_requests_for_partitions_are_withdrawn_by_a_member_that_leaves(member, kept, scope):
    """A partition that is released for it could be claimed by nobody else."""
    kept.claim("somebody who does not answer", "0", "1", "2")
    reader = member().start()
    requests = scope.handover_requests

    def asked():
        return [row for row in kept.held.list_ownership(*requests) if row["owner_id"]]

    eventually(asked)
    reader.stop()
    assert asked() == []


# Tasks


def test_a_task_that_is_cancelled_while_it_waits_loses_no_batch(address, kept):
    async def read():
        found, cancelled = [], 0
        settings = {"store": kept.url, "max_rows": 7, **FAST}
        async with consume_batches(address, **settings) as batches:
            while sum(map(len, numbers(found).values())) < 210:
                waiting = asyncio.create_task(anext(batches))
                await asyncio.sleep(0)
                cancelled += waiting.cancel()
                try:
                    found.append(await waiting)
                except asyncio.CancelledError:
                    # Without a wait of its own, it would be cancelled before any batch comes.
                    await asyncio.to_thread(eventually, lambda: batches._inbox._items)
                    found.append(await anext(batches))
        return numbers(found), cancelled

    found, cancelled = asyncio.run(read())
    assert found == ALL
    assert cancelled


def test_a_task_that_is_cancelled_lets_on_lost_end(hub, address, kept):
    hub.recreate("orders", 1)
    began, ended = asyncio.Event(), []

    async def on_lost(partition):
        began.set()
        await asyncio.to_thread(eventually, lambda: waiting.cancelling())
        ended.append(partition)

    async def read():
        nonlocal waiting
        settings = {"store": kept.url, "on_lost": on_lost, "handover": False, **FAST}
        async with consume_batches(address, **settings) as batches:
            waiting = asyncio.create_task(anext(batches))
            await asyncio.to_thread(eventually, kept.owners)
            await asyncio.to_thread(kept.claim, "somebody else", "0")
            await began.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    waiting = None
    asyncio.run(read())
    assert ended == ["0"]


def test_tasks_share_the_batches_and_none_comes_twice(address, kept):
    async def read():
        found, whole = [], asyncio.Event()

        async def take(batches):
            async for batch in batches:
                found.append(batch)
                if sum(batch.num_rows for batch in found) == 210:
                    whole.set()

        settings = {"store": kept.url, "max_rows": 10, **FAST}
        async with consume_batches(address, **settings) as batches:
            tasks = [asyncio.create_task(take(batches)) for _ in range(3)]
            await whole.wait()
            saved = await batches.commit()
        await asyncio.gather(*tasks)
        return found, saved

    found, saved = asyncio.run(read())
    assert saved == {"0": 99, "1": 99, "2": 9}
    by_partition = {each: sorted(rows) for each, rows in numbers(found).items()}
    assert by_partition == ALL


def test_a_loop_that_ends_without_a_close_leaves_no_thread(hub, address, kept):
    """As Ctrl-C ends it outside of a `with` block: all tasks are cancelled."""

    async def read():
        batches = consume_batches(address, store=kept.url, **FAST)
        await anext(batches)

    asyncio.run(read())
    gc.collect()
    eventually(lambda: not own_threads())
    assert kept.owners() == {}


# Signals


PROGRAM = """
import sys
from eventhub_checkpoints.arrow import consume_batches

with consume_batches(sys.argv[1], store=sys.argv[2], max_wait=0.0) as batches:
    for batch in batches:
        print("batch", batch.num_rows, flush=True)
    print("saved", sum(batches.commit().values()), flush=True)
print("end", flush=True)
"""
AIO_PROGRAM = """
import asyncio
import sys
from eventhub_checkpoints.aio.arrow import consume_batches

async def main():
    async with consume_batches(sys.argv[1], store=sys.argv[2], max_wait=0.0) as batches:
        async for batch in batches:
            print("batch", batch.num_rows, flush=True)
        print("saved", sum((await batches.commit()).values()), flush=True)
    print("end", flush=True)

asyncio.run(main())
"""
BUSY = """
import sys
import time
from eventhub_checkpoints.arrow import consume_batches

with consume_batches(sys.argv[1], store=sys.argv[2], max_wait=0.0) as batches:
    for batch in batches:
        print("batch", batch.num_rows, flush=True)
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise
"""
SOURCE = str(Path(eventhub_checkpoints.__file__).parent.parent)


def program(text, url, folder, source):
    return Running([sys.executable, "-c", source, text, url], folder, {"PYTHONPATH": SOURCE})


def printed_rows(printed):
    return sum(int(line.split()[1]) for line in printed.splitlines() if line.startswith("batch"))


@pytest.mark.parametrize("source", [PROGRAM, AIO_PROGRAM], ids=["sync", "aio"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_loop_of_a_with_block_and_what_follows_can_still_commit(
    hub, text, scope, tmp_path, source, number
):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    with open_store(url) as store:
        store.create()
        with program(text, url, tmp_path, source) as running:
            running.until(lambda printed: printed_rows(printed) == 210)
            assert running.stop(number) == 0
        assert running.printed.endswith("saved 207\nend\n")
        assert {row["owner_id"] for row in store.list_ownership(*scope)} == {""}


def test_a_second_ctrl_c_interrupts_a_loop_that_does_not_come_round(hub, text, tmp_path):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    with open_store(url) as store:
        store.create()
    with program(text, url, tmp_path, BUSY) as running:
        running.until(lambda printed: "batch" in printed)
        running.process.send_signal(signal.SIGINT)
        # The first one changes nothing that could be seen here, until the loop comes round.
        eventually(lambda: running.process.send_signal(signal.SIGINT) or is_interrupted(running))
        assert running.end() != 0
    assert "KeyboardInterrupt" in running.printed


def is_interrupted(running):
    return running.process.poll() is not None


def test_a_member_that_is_killed_releases_nothing_and_is_replaced_when_it_expires(
    member, text, scope, tmp_path, hub
):
    url = f"sqlite:///{tmp_path / 'c.db'}"
    with open_store(url) as store:
        store.create()
        with program(text, url, tmp_path, PROGRAM) as running:
            running.until(lambda printed: printed_rows(printed) == 210)
            running.stop(signal.SIGKILL)
        owners = {row["owner_id"] for row in store.list_ownership(*scope)}
        assert len(owners) == 1
        assert "" not in owners
        reader = member(store=url, partition_ownership_expiration_interval=1.0).start()
        eventually(lambda: reader.count == 210)
        assert {each: reader.numbers(each) for each in ALL} == ALL
