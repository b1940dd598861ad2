"""Every stop ends within `drain_timeout` and `write_timeout`, whatever waits for what."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import every
from simulated_time import DIGITS, now
from variants import ONLY_SIMULATED
from waiting import LIMIT

Wait = Callable[..., Any]
AT_START = {"starting_position": "-1"}
AWAY = ConnectionError("storage is away")
PARTITIONS = [str(number) for number in range(8)]


@pytest.mark.parametrize("limit", ["max_pending", "max_unsaved"])
def test_a_stop_ends_while_a_handler_waits_for_room(
    stage: Any, wait: Wait, elapse: Wait, limit: str
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(
        store, every(events=1), drain_timeout=1, write_timeout=1, **{limit: 4}
    )
    store.error = AWAY if limit == "max_unsaved" else None
    stage.publish(12)
    consumer = stage.start(store, checkpointer, finishes=limit == "max_unsaved")
    wait(lambda: consumer.has("0", 4))
    elapse(2)
    stage.close(consumer)
    stage.check_seconds(consumer.seconds["0"], 1.0)
    wait(lambda: ("release", "0") in store.log)
    assert consumer.closed[0][0] == "0"
    assert consumer.arrived["0"] == [0, 1, 2, 3], "no event is begun that there is no room for"


def test_what_is_in_work_is_waited_for_also_where_a_handler_waited_for_room(
    stage: Any, wait: Wait, elapse: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20, max_pending=4)
    stage.publish(12)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    closing = stage.begin_close(consumer)
    elapse(5)
    assert consumer.closed == []
    for tracked in list(consumer.tracked["0"].values()):
        tracked.done()
    closing.result(LIMIT)
    ends = [entry for entry in store.log if entry[0] in ("update", "release")]
    assert ends == [("update", "0", 3), ("release", "0")]


@ONLY_SIMULATED
def test_closing_waits_for_a_partition_that_the_client_still_closes(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20)
    tracked_events: list[Any] = []
    closed: list[str] = []

    async def on_event(context: Any, event: Any) -> None:
        tracked_events.append(await checkpointer.track(context, event))

    async def on_close(context: Any, reason: Any) -> None:
        closed.append("begun")
        await checkpointer.on_close(context, reason)
        closed.append("ended")

    async def run() -> None:
        client = stage.client(store, load_balancing_interval=30)
        handlers = {**checkpointer.handlers, "on_partition_close": on_close}
        receiving = asyncio.create_task(client.receive(on_event, **handlers, **AT_START))
        while len(tracked_events) < 3:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
        closing = asyncio.create_task(client.close())
        while not closed:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        receiving.cancel()
        await asyncio.wait([receiving, closing], timeout=10)
        assert (receiving.done(), closing.done(), closed) == (True, True, ["begun"])
        asyncio.get_running_loop().call_later(
            7, lambda: [tracked.done() for tracked in tracked_events]
        )
        began = now()
        await checkpointer.close()
        assert round(now() - began, DIGITS) == 7
        ends = [entry for entry in store.log if entry[0] in ("update", "release")]
        assert ends == [("update", "0", 2), ("release", "0")]

    stage.publish(3)
    stage.finished(run())


def test_a_handler_that_closes_its_client_is_not_waited_for(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=20)
    clients: list[Any] = []

    def on_event(context: Any, event: Any) -> None:
        with checkpointer.track(context, event):
            clients[0].close()

    async def on_event_aio(context: Any, event: Any) -> None:
        async with checkpointer.track(context, event):
            await clients[0].close()

    async def run_aio() -> None:
        clients.append(stage.client(store, load_balancing_interval=30))
        handlers = {**checkpointer.handlers, **AT_START}
        receiving = asyncio.create_task(clients[0].receive(on_event_aio, **handlers))
        while ("release", "0") not in store.log:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
        receiving.cancel()
        await asyncio.wait([receiving])
        await clients[0].close()

    stage.publish(1)
    if stage.is_aio:
        stage.finished(run_aio())
        assert now() < 20, "drain_timeout"
    else:
        clients.append(stage.client(store, load_balancing_interval=30))
        clients[0].receive(on_event, **checkpointer.handlers, **AT_START)
    assert ("release", "0") in store.log
    assert ("update", "0", 0) in store.log or stage.is_aio, "an aio handler is cancelled there"


@pytest.fixture
def wide(stage: Any) -> Any:
    stage.hub.add_partitions("orders", len(PARTITIONS) - 1)
    for partition_id in PARTITIONS:
        stage.publish(3, partition_id)
    return stage


def check_shared(wide: Any, consumer: Any) -> None:
    """All partitions together took the 2 s of one; in turn they would take 16 s."""
    if wide.is_simulated:
        assert consumer.seconds == dict.fromkeys(PARTITIONS, 2.0)
    else:
        assert sum(consumer.seconds.values()) < 10


def test_partitions_share_the_time_that_events_in_work_may_take(wide: Any, wait: Wait) -> None:
    store = wide.store()
    checkpointer = wide.checkpointer(store, drain_timeout=2)
    consumer = wide.start(store, checkpointer)
    wait(lambda: all(consumer.has(key, 3) for key in PARTITIONS))
    wide.close(consumer)
    check_shared(wide, consumer)
    assert sorted(key for key, _ in consumer.closed) == PARTITIONS


def test_partitions_share_the_time_that_the_last_write_may_take(wide: Any, wait: Wait) -> None:
    store = wide.store()
    checkpointer = wide.checkpointer(store, every(events=1000), write_timeout=2)
    consumer = wide.start(store, checkpointer, finishes=True)
    wait(lambda: all(consumer.has(key, 3) for key in PARTITIONS))
    store.is_open.clear()
    wide.close(consumer)
    check_shared(wide, consumer)
    assert sorted(key for key, _ in consumer.closed) == PARTITIONS
    assert store.begun == len(PARTITIONS)
    store.is_open.set()


def test_the_events_of_a_client_that_goes_on_have_their_own_time(
    stage: Any, wait: Wait, elapse: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=2)
    stage.publish(3)
    orders = stage.start(store, checkpointer)
    audit = stage.start(store, checkpointer, consumer_group="audit")
    wait(lambda: orders.has("0", 3) and audit.has("0", 3))
    stage.close(orders)
    closing = stage.begin_close(audit)
    elapse(1)
    assert audit.closed == []
    for tracked in audit.tracked["0"].values():
        tracked.done()
    closing.result(LIMIT)
    assert store.saved["0"] == [2]
