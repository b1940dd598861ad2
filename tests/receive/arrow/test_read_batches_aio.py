"""What only the asynchronous variant can get wrong: the loop, and cancelled tasks."""

import asyncio
import threading

import pytest

from eventhub_checkpoints import HubUnavailableError, Scope
from eventhub_checkpoints.aio.arrow import HubAddress, ReadSettings, read_batches
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.arrow._async.source import call
from waiting import LIMIT, eventually

TENS = ReadSettings(rows_per_batch=10)
SILENT = ReadSettings(receive_path="public")
"""The client's public API waits in silence for a consumer group that is not there."""


async def numbers(batches):
    return [number async for batch in batches for number in batch["sequenceNumber"].to_pylist()]


def test_a_task_that_is_cancelled_while_it_waits_loses_no_batch(address):
    async def read():
        found, cancelled = [], 0
        async with read_batches(address, partition_ids=["0"], settings=TENS) as batches:
            while True:
                waiting = asyncio.create_task(anext(batches, None))
                await asyncio.sleep(0)
                if waiting.cancel():
                    cancelled += 1
                try:
                    batch = await waiting
                except asyncio.CancelledError:
                    continue
                if batch is None:
                    return found, cancelled
                found += batch["sequenceNumber"].to_pylist()

    found, cancelled = asyncio.run(read())
    assert found == [*range(100)]
    assert cancelled


class Gate:
    """Of an address: the question for its partitions is answered once this is open."""

    def __init__(self, address, *failures):
        self.opened = threading.Event()
        self.asked = 0
        self._failures = [*failures]
        type(address).open_queries = lambda each: self._open_queries(each)

    def _open_queries(self, address):
        self.asked += 1
        assert self.opened.wait(LIMIT)
        if self._failures:
            raise self._failures.pop()
        return HubAddress.open_queries(address)

    async def is_asked(self):
        await asyncio.to_thread(eventually, lambda: self.asked)


def test_a_wait_that_is_cut_off_does_not_start_the_planning_anew(address):
    gate = Gate(address)

    async def read():
        async with read_batches(address, partition_ids=["0"], settings=TENS) as batches:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(batches), 0.01)
            await gate.is_asked()
            gate.opened.set()
            return (await anext(batches)).num_rows

    assert asyncio.run(read()) == 10
    assert gate.asked == 1


def test_planning_that_failed_begins_anew_and_its_error_is_not_lost(address):
    gate = Gate(address, HubUnavailableError("not yet"))

    async def read():
        async with read_batches(address, partition_ids=["0"], settings=TENS) as batches:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(batches), 0.01)
            gate.opened.set()
            # It fails while nobody waits for it.
            await asyncio.wait([batches._opening._work])
            with pytest.raises(HubUnavailableError, match="not yet"):
                await anext(batches)
            return await numbers(batches)

    assert asyncio.run(read()) == [*range(100)]


def test_closing_while_the_hub_is_asked_ends_the_wait(address):
    gate = Gate(address)

    async def read():
        batches = read_batches(address)
        waiting = asyncio.create_task(anext(batches, "the end"))
        await gate.is_asked()
        await batches.close()
        return await waiting

    # The hub has not answered, and never would.
    assert asyncio.run(read()) == "the end"
    gate.opened.set()


@pytest.fixture
def hub_of_another_group():
    with LocalHub({"orders": 1}, consumer_groups=["known"]) as hub:
        hub.publish("orders", "0", ["event"])
        yield hub


def test_the_loop_goes_on_while_a_hub_is_silent_and_ends(hub_of_another_group):
    async def wait(hub):
        scope = Scope("any", "orders", "unknown")
        async with read_batches(hub.connection_string("orders"), scope, settings=SILENT) as batches:
            waiting = asyncio.create_task(anext(batches))
            await asyncio.to_thread(eventually, hub.refused_links)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert asyncio.run(wait(hub_of_another_group))


def test_closing_wakes_a_task_that_waits(hub_of_another_group):
    async def close(hub):
        scope = Scope("any", "orders", "unknown")
        batches = read_batches(hub.connection_string("orders"), scope, settings=SILENT)
        waiting = asyncio.create_task(anext(batches, "the end"))
        await asyncio.to_thread(eventually, hub.refused_links)
        assert not waiting.done()
        await batches.close()
        return await waiting

    assert asyncio.run(close(hub_of_another_group)) == "the end"


def test_several_tasks_share_the_batches_and_none_comes_twice(address):
    async def read():
        async with read_batches(address, settings=TENS) as batches:
            tasks = [asyncio.create_task(numbers(batches)) for _ in range(3)]
            return [number for task in tasks for number in await task]

    assert sorted(asyncio.run(read())) == sorted([*range(100), *range(100), *range(10)])


def test_a_question_that_hangs_keeps_no_loop_from_ending():
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def hang():
        begun.set()
        release.wait(LIMIT)
        ended.set()

    async def ask():
        hanging = asyncio.create_task(call(hang))
        await asyncio.to_thread(begun.wait, LIMIT)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)

    asyncio.run(ask())
    assert begun.is_set()
    assert not ended.is_set()
    release.set()
    assert ended.wait(LIMIT)
