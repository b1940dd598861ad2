"""What only the asynchronous variant can get wrong: the loop, and cancelled tasks."""

import asyncio
import threading

import pytest

from eventhub_checkpoints import HubUnavailableError
from eventhub_checkpoints.aio.arrow import HubAddress, ReadSettings, read_batches
from waiting import LIMIT, eventually

TENS = ReadSettings(rows_per_batch=10)
PUBLIC = ReadSettings(receive_path="public")
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


def test_the_loop_goes_on_while_a_hub_is_busy_and_ends(busy_hub):
    async def wait(hub):
        async with read_batches(hub.connection_string("orders"), settings=PUBLIC) as batches:
            waiting = asyncio.create_task(anext(batches))
            await asyncio.to_thread(eventually, hub.refused_links)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert asyncio.run(wait(busy_hub))


def test_closing_wakes_a_task_that_waits(busy_hub):
    async def close(hub):
        batches = read_batches(hub.connection_string("orders"), settings=PUBLIC)
        waiting = asyncio.create_task(anext(batches, "the end"))
        await asyncio.to_thread(eventually, hub.refused_links)
        assert not waiting.done()
        await batches.close()
        return await waiting

    assert asyncio.run(close(busy_hub)) == "the end"
