"""What is saved is what was finished, in whatever order, and before its partition is released."""

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from eventhub_checkpoints import (
    PartitionStats,
    Scope,
    every,
    trailing,
)
from simulated_time import POLL
from variants import EVERY_CLIENT, ONLY_SIMULATED, ONLY_SYNC
from waiting import LIMIT

EVENTS = 60
Wait = Callable[..., Any]


@EVERY_CLIENT
def test_events_that_finish_in_any_order_are_saved_by_their_prefix(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(6)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 6))
    tracked_events = consumer.tracked["0"]
    for number, saved in ((1, []), (2, []), (0, [2]), (5, [2]), (3, [2, 3]), (4, [2, 3, 5])):
        tracked_events[number].done()
        wait(lambda saved=saved: store.saved["0"] == saved)
    assert checkpointer.stats()["0"].lag_events == 0


@EVERY_CLIENT
@pytest.mark.parametrize("word", ["-1", "@latest", "no offset", "end"])
def test_a_client_goes_on_by_the_number_beside_a_word(stage: Any, wait: Wait, word: str) -> None:
    store = stage.store()
    scope = Scope(stage.namespace, "orders", "$Default").as_dict()
    row = {**scope, "partition_id": "0", "sequence_number": 4, "offset": word}
    stage.finished(store.update_checkpoint(row))
    stage.publish(7)
    consumer = stage.start(store, stage.checkpointer(store, every(events=1)))
    wait(lambda: consumer.has("0", 2))
    assert consumer.arrived["0"] == [5, 6]


@ONLY_SYNC
def test_a_pool_of_threads_saves_no_event_that_is_not_finished(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=7), max_pending=16)
    client = stage.client(store)
    stage.publish(EVENTS)
    processed: list[int] = []
    has_ended: dict[int, threading.Event] = defaultdict(threading.Event)

    def work(tracked: Any, number: int) -> None:
        with tracked:
            if number % 2 == 0:  # every other event is overtaken by the one behind it
                assert has_ended[number + 1].wait(LIMIT)
            processed.append(number)
        has_ended[number].set()

    with ThreadPoolExecutor(9) as pool:

        def on_event(context: Any, event: Any) -> None:
            pool.submit(work, checkpointer.track(context, event), event.sequence_number)

        receiving = pool.submit(
            client.receive,
            on_event,
            starting_position="-1",
            on_partition_initialize=checkpointer.on_initialize,
            on_partition_close=checkpointer.on_close,
        )
        wait(lambda: len(processed) == EVENTS)
        client.close()
        receiving.result()
    assert sorted(processed) == list(range(EVENTS)) != processed
    assert store.saved["0"] == sorted(store.saved["0"])
    assert store.saved["0"][-1] == EVENTS - 1


@ONLY_SIMULATED
def test_a_group_of_tasks_saves_no_event_that_is_not_finished(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=7), max_pending=16)
    stage.publish(EVENTS)
    processed: list[int] = []

    async def work(tracked: Any, number: int) -> None:
        async with tracked:
            await asyncio.sleep(random.uniform(0, 0.01))
            processed.append(number)

    async def on_batch(context: Any, events: list[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            for event in events:
                tracked = await checkpointer.track(context, event)
                group.create_task(work(tracked, event.sequence_number))

    async def run() -> None:
        client = stage.client(store)
        receiving = asyncio.create_task(
            client.receive_batch(
                on_batch,
                starting_position="-1",
                on_partition_initialize=checkpointer.on_initialize,
                on_partition_close=checkpointer.on_close,
            )
        )
        while len(processed) < EVENTS:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
        await client.close()
        receiving.cancel()
        await asyncio.wait([receiving])
        await checkpointer.close()  # the client does not always wait for the last save

    stage.finished(run())
    assert sorted(processed) == list(range(EVENTS)) != processed
    assert store.saved["0"] == sorted(store.saved["0"])
    assert store.saved["0"][-1] == EVENTS - 1


@EVERY_CLIENT
def test_at_the_end_events_finish_then_are_saved_and_then_the_partition_is_released(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=30)
    stage.publish(4)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    (session,) = checkpointer._sessions.open.values()
    closing = stage.begin_close(consumer)
    wait(lambda: session.ends_by)
    assert (consumer.closed, store.saved) == ([], {}), "what is being processed is waited for"
    for tracked in consumer.tracked["0"].values():
        tracked.done()
    closing.result(LIMIT)
    ends = [entry for entry in store.log if entry[0] in ("update", "release")]
    assert ends == [("update", "0", 3), ("release", "0")]
    assert consumer.closed == [("0", "SHUTDOWN")]


def test_events_may_be_finished_by_the_event_itself_also_while_the_client_stops(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=30)
    stage.publish(2)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 2))
    events = [tracked._event for tracked in consumer.tracked["0"].values()]
    closing = stage.begin_close(consumer)
    for event in events:
        checkpointer.done(event)
    closing.result(LIMIT)
    assert store.saved["0"] == [1]


def test_what_is_not_finished_in_time_is_left_to_be_read_again(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), drain_timeout=0.2)
    stage.publish(4)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    consumer.tracked["0"][0].done()
    stage.close(consumer)
    assert store.saved["0"] == [0]
    assert "3 events were not finished within 0.2 s" in caplog.text
    for tracked in consumer.tracked["0"].values():
        tracked.done()
    stage.finished(checkpointer.flush())
    assert store.saved["0"] == [0], "the claim is over"


def test_an_event_whose_block_raises_is_not_passed_and_is_read_again(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(4)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    tracked_events = consumer.tracked["0"]
    tracked_events[0].done()
    with pytest.raises(ZeroDivisionError):
        stage.finished(leave_by_an_error(stage, tracked_events[1]))
    tracked_events[2].done()
    wait(lambda: store.saved["0"] == [0])
    stage.close(consumer)
    assert store.saved["0"] == [0]
    again = stage.start(store, checkpointer)
    wait(lambda: again.has("0", 3))
    assert again.arrived["0"] == [1, 2, 3]


def leave_by_an_error(stage: Any, tracked: Any) -> Any:
    async def leave() -> None:
        async with tracked:
            raise ZeroDivisionError

    if stage.is_aio:
        return leave()
    with tracked:
        raise ZeroDivisionError


def test_a_ticket_that_was_handed_to_a_worker_is_entered_once(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(3)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 3))
    tracked_events = consumer.tracked["0"]

    async def use(tracked: Any) -> None:
        async with tracked:
            pass

    for number in (2, 0):
        if stage.is_aio:
            stage.finished(use(tracked_events[number]))
        else:
            with tracked_events[number]:
                pass
    wait(lambda: store.saved["0"] == [0])
    assert checkpointer.stats()["0"].pending == 2


@ONLY_SIMULATED
def test_a_ticket_that_was_not_awaited_says_so(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store)
    stage.publish(1)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 1))
    event = consumer.tracked["0"][0]._event
    with pytest.raises(RuntimeError, match="`await` what track"):
        checkpointer.track(consumer.opened[0], event).done()


def test_time_alone_saves_an_idle_partition(stage: Any, wait: Wait, elapse: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(seconds=0.5))
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3))
    wait(lambda: store.saved["0"][-1:] == [2])
    assert store.begun <= 2
    elapse(3)
    assert store.begun <= 2, "what is saved is not saved again"


def test_a_replay_window_is_written_whole_at_the_end(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, trailing(events=100, seconds=600))
    stage.publish(25)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 25))
    assert store.saved == {}
    stage.close(consumer)
    assert store.saved["0"] == [24]


def test_the_statistics_say_what_is_where(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=2))
    stage.publish(5)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 5))
    tracked_events = consumer.tracked["0"]
    first: PartitionStats = checkpointer.stats()["0"]
    assert (first.pending, first.lag_events) == (5, 5)
    assert (first.position, first.saved_position) == (None, None)
    assert (first.saved, first.refused, first.failed) == (0, 0, 0)
    tracked_events[0].done()
    tracked_events[1].done()
    wait(lambda: checkpointer.stats()["0"].saved)
    tracked_events[2].done()
    tracked_events[4].done()
    stats = checkpointer.stats()["0"]
    assert stats.saved == 1
    assert stats.saved_position.sequence_number == 1
    assert stats.position.sequence_number == 2
    assert (stats.pending, stats.lag_events) == (2, 3)
    assert 0 < stats.lag_seconds < 60
    tracked_events[3].done()
    wait(lambda: checkpointer.stats()["0"].lag_events == 0)
    assert checkpointer.stats()["0"].lag_seconds == 0


@ONLY_SIMULATED
def test_lag_counts_from_the_first_event_after_an_idle_time(
    stage: Any, wait: Wait, elapse: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.opened)
    elapse(3)
    stage.publish(1)
    wait(lambda: consumer.has("0", 1))
    elapse(1)
    assert 1 <= checkpointer.stats()["0"].lag_seconds < 1 + 2 * POLL


def test_close_saves_what_is_finished_while_handlers_run(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000))
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3))
    stage.finished(checkpointer.close())
    assert store.saved["0"] == [2]
    stage.publish(3)
    wait(lambda: consumer.has("0", 6))
    stage.close(consumer)
    assert store.saved["0"] == [2], "it is closed"
    assert caplog.text.count("after its session has ended") == 1
    assert checkpointer.healthy()
