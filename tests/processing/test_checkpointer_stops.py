"""Every stop ends within `drain_timeout` and `write_timeout`, whatever waits for what."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioEventHubConsumerClient

from eventhub_checkpoints import every
from eventhub_checkpoints.localhub import LocalHub

Wait = Callable[..., Any]
AT_START = {"starting_position": "-1"}
AWAY = ConnectionError("storage is away")
PARTITIONS = [str(number) for number in range(8)]
CLIENT = 10.0
"""Seconds that a client needs for itself to close eight partitions on a busy machine.

With 2 s for all partitions together, still less than the 16 s of partitions that wait in turn.
"""


def seconds_to_close(stage: Any, consumer: Any) -> float:
    began = time.monotonic()
    stage.close(consumer)
    return time.monotonic() - began


@pytest.mark.parametrize("limit", ["max_pending", "max_unsaved"])
def test_a_stop_ends_while_a_handler_waits_for_room(stage: Any, wait: Wait, limit: str) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(
        store, every(events=1), drain_timeout=1, write_timeout=1, **{limit: 4}
    )
    store.error = AWAY if limit == "max_unsaved" else None
    stage.publish(12)
    consumer = stage.start(store, checkpointer, finishes=limit == "max_unsaved")
    wait(lambda: consumer.has("0", 4))
    with pytest.raises(AssertionError):
        wait(lambda: consumer.has("0", 5), seconds=0.5)
    assert seconds_to_close(stage, consumer) < 2 + CLIENT
    wait(lambda: ("release", "0") in store.log)
    assert consumer.closed[0][0] == "0"
    assert consumer.arrived["0"] == [0, 1, 2, 3], "no event is begun that there is no room for"


def test_what_is_in_work_is_waited_for_also_where_a_handler_waited_for_room(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20, max_pending=4)
    stage.publish(12)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(stage.close, consumer)
        with pytest.raises(AssertionError):
            wait(lambda: consumer.closed, seconds=1)
        for ticket in list(consumer.tickets["0"].values()):
            ticket.done()
        closing.result()
    ends = [entry for entry in store.log if entry[0] in ("update", "release")]
    assert ends == [("update", "0", 3), ("release", "0")]


@pytest.mark.parametrize("variant", ["aio"])
def test_closing_waits_for_a_partition_that_the_client_still_closes(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20)
    tickets: list[Any] = []
    closed: list[str] = []

    async def on_event(context: Any, event: Any) -> None:
        tickets.append(await checkpointer.track(context, event))

    async def on_close(context: Any, reason: Any) -> None:
        closed.append("begun")
        await checkpointer.on_close(context, reason)
        closed.append("ended")

    async def run() -> None:
        arguments = stage.arguments(store, load_balancing_interval=30)
        client = AioEventHubConsumerClient.from_connection_string(**arguments)
        handlers = {**checkpointer.handlers, "on_partition_close": on_close}
        receiving = asyncio.create_task(client.receive(on_event, **handlers, **AT_START))
        while len(tickets) < 3:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
        closing = asyncio.create_task(client.close())
        while not closed:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        receiving.cancel()
        await asyncio.wait([receiving, closing], timeout=10)
        assert (receiving.done(), closing.done(), closed) == (True, True, ["begun"])
        asyncio.get_running_loop().call_later(1, lambda: [ticket.done() for ticket in tickets])
        await checkpointer.close()
        ends = [entry for entry in store.log if entry[0] in ("update", "release")]
        assert ends == [("update", "0", 2), ("release", "0")]

    stage.publish(3)
    stage.finished(run())


def test_a_handler_that_closes_its_client_is_not_waited_for(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20)
    kind = AioEventHubConsumerClient if stage.is_aio else EventHubConsumerClient
    arguments = stage.arguments(store, load_balancing_interval=30)
    clients: list[Any] = []

    def on_event(context: Any, event: Any) -> None:
        with checkpointer.track(context, event):
            clients[0].close()

    async def on_event_aio(context: Any, event: Any) -> None:
        async with checkpointer.track(context, event):
            await clients[0].close()

    async def run_aio() -> None:
        clients.append(kind.from_connection_string(**arguments))
        handlers = {**checkpointer.handlers, **AT_START}
        receiving = asyncio.create_task(clients[0].receive(on_event_aio, **handlers))
        while ("release", "0") not in store.log:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
        receiving.cancel()
        await asyncio.wait([receiving])
        await clients[0].close()

    stage.publish(1)
    began = time.monotonic()
    if stage.is_aio:
        stage.finished(run_aio())
    else:
        clients.append(kind.from_connection_string(**arguments))
        clients[0].receive(on_event, **checkpointer.handlers, **AT_START)
    assert time.monotonic() - began < 10
    assert ("release", "0") in store.log
    assert ("update", "0", 0) in store.log or stage.is_aio, "an aio handler is cancelled there"


@pytest.fixture
def wide_hub() -> Iterator[LocalHub]:
    with LocalHub({"orders": len(PARTITIONS)}) as running:
        yield running


@pytest.fixture
def wide(stage: Any, wide_hub: LocalHub) -> Any:
    stage.hub = wide_hub
    for partition_id in PARTITIONS:
        stage.publish(3, partition_id)
    return stage


def test_partitions_share_the_time_that_events_in_work_may_take(wide: Any, wait: Wait) -> None:
    store = wide.store()
    checkpointer = wide.checkpointer(store, drain_timeout=2)
    consumer = wide.start(store, checkpointer)
    wait(lambda: all(consumer.has(key, 3) for key in PARTITIONS))
    assert seconds_to_close(wide, consumer) < 2 + CLIENT
    assert sorted(key for key, _ in consumer.closed) == PARTITIONS


def test_partitions_share_the_time_that_the_last_write_may_take(wide: Any, wait: Wait) -> None:
    store = wide.store()
    checkpointer = wide.checkpointer(store, every(events=1000), write_timeout=2)
    consumer = wide.start(store, checkpointer, finishes=True)
    wait(lambda: all(consumer.has(key, 3) for key in PARTITIONS))
    store.is_open.clear()
    assert seconds_to_close(wide, consumer) < 2 + CLIENT
    assert sorted(key for key, _ in consumer.closed) == PARTITIONS
    assert store.begun == len(PARTITIONS)
    store.is_open.set()


def test_the_events_of_a_client_that_goes_on_have_their_own_time(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=2)
    stage.publish(3)
    orders = stage.start(store, checkpointer)
    audit = stage.start(store, checkpointer, consumer_group="audit")
    wait(lambda: orders.has("0", 3) and audit.has("0", 3))
    stage.close(orders)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(stage.close, audit)
        with pytest.raises(AssertionError):
            wait(lambda: audit.closed, seconds=1)
        for ticket in audit.tickets["0"].values():
            ticket.done()
        closing.result()
    assert store.saved["0"] == [2]
