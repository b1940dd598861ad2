"""What only the asynchronous variant can get wrong: the loop, and cancelled tasks."""

import asyncio
import threading
import time

import pytest

from eventhub_checkpoints import HubUnavailableError, Scope
from eventhub_checkpoints.aio.arrow import HubAddress, ReadSettings, read_batches
from eventhub_checkpoints.localhub import LocalHub
from eventhub_checkpoints.receive.arrow._async.source import call

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
                    await asyncio.sleep(0.001)
                    continue
                if batch is None:
                    return found, cancelled
                found += batch["sequenceNumber"].to_pylist()

    found, cancelled = asyncio.run(read())
    assert found == [*range(100)]
    assert cancelled


def asked_slowly(address, seconds):
    """The address, which takes so long to say its partitions; and how often it was asked."""
    asked = []

    def open_queries(self):
        asked.append(self)
        time.sleep(seconds)
        return HubAddress.open_queries(self)

    type(address).open_queries = open_queries
    return asked


def test_a_wait_that_is_cut_off_does_not_start_the_planning_anew(address):
    asked = asked_slowly(address, 0.5)

    async def read():
        polls = 0
        async with read_batches(address, partition_ids=["0"], settings=TENS) as batches:
            while polls < 100:
                polls += 1
                try:
                    batch = await asyncio.wait_for(anext(batches), 0.1)
                except TimeoutError:
                    continue
                return polls, batch.num_rows
        return polls, 0

    polls, rows = asyncio.run(read())
    assert rows == 10
    assert polls > 1
    assert len(asked) == 1


def test_planning_that_failed_begins_anew_and_its_error_is_not_lost(address):
    failures = [HubUnavailableError("not yet")]

    def open_queries(self):
        time.sleep(0.2)
        if failures:
            raise failures.pop()
        return HubAddress.open_queries(self)

    type(address).open_queries = open_queries

    async def read():
        async with read_batches(address, partition_ids=["0"], settings=TENS) as batches:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(batches), 0.05)
            await asyncio.sleep(0.4)
            with pytest.raises(HubUnavailableError, match="not yet"):
                await anext(batches)
            return await numbers(batches)

    assert asyncio.run(read()) == [*range(100)]


def test_closing_while_the_hub_is_asked_ends_the_wait_at_once(address):
    asked_slowly(address, 3)

    async def read():
        batches = read_batches(address)
        waiting = asyncio.create_task(anext(batches, "the end"))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await batches.close()
        return await waiting, time.monotonic() - began

    found, seconds = asyncio.run(read())
    assert found == "the end"
    assert seconds < 2


def test_the_loop_goes_on_while_a_hub_is_silent_and_ends_at_once():
    async def wait(hub):
        scope = Scope("any", "orders", "unknown")
        async with read_batches(hub.connection_string("orders"), scope, settings=SILENT) as batches:
            waiting = asyncio.create_task(anext(batches))
            for _ in range(21):
                await asyncio.sleep(0.01)
            assert not waiting.done()
            waiting.cancel()
            began = time.monotonic()
            await asyncio.gather(waiting, return_exceptions=True)
        return time.monotonic() - began

    with LocalHub({"orders": 1}, consumer_groups=["known"]) as hub:
        hub.publish("orders", "0", ["event"])
        seconds = asyncio.run(wait(hub))
    assert seconds < 5


def test_closing_wakes_a_task_that_waits():
    async def close(hub):
        scope = Scope("any", "orders", "unknown")
        batches = read_batches(hub.connection_string("orders"), scope, settings=SILENT)
        waiting = asyncio.create_task(anext(batches, "the end"))
        await asyncio.sleep(0.4)  # until it receives, and nothing comes
        assert not waiting.done()
        await batches.close()
        return await asyncio.wait_for(waiting, 5)

    with LocalHub({"orders": 1}, consumer_groups=["known"]) as hub:
        hub.publish("orders", "0", ["event"])
        assert asyncio.run(close(hub)) == "the end"


def test_several_tasks_share_the_batches_and_none_comes_twice(address):
    async def read():
        async with read_batches(address, settings=TENS) as batches:
            tasks = [asyncio.create_task(numbers(batches)) for _ in range(3)]
            return [number for task in tasks for number in await task]

    assert sorted(asyncio.run(read())) == sorted([*range(100), *range(100), *range(10)])


def test_a_question_that_hangs_keeps_no_loop_from_ending():
    release = threading.Event()

    async def ask():
        hanging = asyncio.create_task(call(release.wait, 60))
        await asyncio.sleep(0.05)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)

    began = time.monotonic()
    asyncio.run(ask())
    assert time.monotonic() - began < 5
    release.set()
