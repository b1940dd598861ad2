"""What a processor asks of its `CheckpointManager`."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from eventhub_checkpoints import InvalidRecordError, every
from eventhub_checkpoints.processing._async.session import PartitionSession as AioPartitionSession
from eventhub_checkpoints.processing._async.tracked_event import (
    TrackedBatchEvent as AioTrackedBatchEvent,
)
from eventhub_checkpoints.processing._sync.session import PartitionSession
from eventhub_checkpoints.processing._sync.tracked_event import TrackedBatchEvent
from eventhub_checkpoints.processing.statistics import Tally
from variants import EVERY_CLIENT
from waiting import LIMIT

Wait = Callable[..., Any]
ENDED = "process_events ended"


class Asked:
    """A handler that asks for checkpoints of its events, and keeps the answers."""

    def __init__(self, ask: Callable[[Any, list[Any]], Any]) -> None:
        self.answers: list[Any] = []
        self.stored: list[Any] = []
        self.ask = ask

    def __call__(self, one: Any, events: list[Any]) -> Any:
        for event in events:
            try:
                answer = yield from self.ask(one, event)
            except Exception as error:
                answer = error
            self.answers.append(answer)


@EVERY_CLIENT
def test_a_checkpoint_within_a_batch_is_stored_when_it_says_so(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def ask(one: Any, event: Any) -> Any:
        number, update = event.sequence_number, one.checkpoints.update_checkpoint
        way = number % 3
        if way == 0:
            answer = yield update(event)
        elif way == 1:
            answer = yield update(event.offset, number)
        else:
            answer = yield update(offset=event.offset, sequence_number=number)
        return answer, store.saved["0"][-1]

    site.publish(9)
    run = site.processor(store, policy=None)
    run.deeds.steps["process_events"] = asked = Asked(ask)
    run.call("start")
    wait(lambda: len(asked.answers) == 9)
    assert asked.answers == [(True, number) for number in range(9)]
    (row,) = site.loop.finished(
        store.inner.list_checkpoints(*site.loop.finished(store.inner.list_scopes())[0])
    )
    assert row["offset"]


@pytest.mark.parametrize(
    "wrong", [(), (5,), ("1",), ("1", -(2**63) - 1), ("1", 10), (None, None), ("\n", 0)], ids=str
)
def test_what_names_no_event_is_refused(site: Any, wait: Wait, wrong: tuple[Any, ...]) -> None:
    store = site.stage.store()

    def ask(one: Any, event: Any) -> Any:
        return (yield one.checkpoints.update_checkpoint(*wrong))

    site.publish(1)
    run = site.processor(store, policy=None)
    run.deeds.steps["process_events"] = asked = Asked(ask)
    run.call("start")
    wait(lambda: asked.answers)
    assert isinstance(asked.answers[0], InvalidRecordError)
    run.call("stop")
    assert site.row(store) is None


def test_a_checkpoint_while_storage_is_away_is_stored_later(site: Any, wait: Wait) -> None:
    store = site.stage.store()
    store.error = OSError("storage is away")

    def ask(one: Any, event: Any) -> Any:
        return (yield one.checkpoints.update_checkpoint(event))

    site.publish(1)
    run = site.processor(store, policy=None, write_timeout=0.4)
    run.deeds.steps["process_events"] = asked = Asked(ask)
    run.call("start")
    wait(lambda: asked.answers)
    assert asked.answers == [False]
    assert ("0", store.error) in run.deeds.errors
    store.error = None
    wait(lambda: site.row(store) == 0)


def test_only_what_is_told_is_saved_without_a_policy(site: Any, wait: Wait) -> None:
    store = site.stage.store()
    site.publish(20)
    run = site.processor(store, policy=None, max_batch_size=5)
    run.call("start")
    wait(lambda: len(run.deeds.numbers(ENDED)) == 20)
    (one,) = run.deeds.made

    def later(number: int) -> Any:
        return site.loop.finished(one.checkpoints.update_checkpoint(None, number))

    # In the middle of an older batch, then further back.
    assert later(7)
    assert site.row(store) == 7
    assert later(3)
    assert site.row(store) == 7
    run.call("stop")
    assert site.row(store) == 7
    assert later(9) is False
    assert site.row(store) == 7
    run.call("start")
    wait(lambda: len(run.deeds.numbers()) == 32)
    assert run.deeds.numbers()[20:] == list(range(8, 20))


def test_nothing_is_written_without_saving(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def ask(one: Any, event: Any) -> Any:
        return (yield one.checkpoints.update_checkpoint(event))

    site.publish(5)
    run = site.processor(store, save=False)
    run.deeds.steps["process_events"] = asked = Asked(ask)
    run.call("start")
    wait(lambda: len(asked.answers) == 5)
    run.call("stop")
    assert asked.answers == [False] * 5
    assert store.begun == 0


class Left:
    """A handler that leaves its events behind."""

    def __init__(self) -> None:
        self.tracked: dict[int, Any] = {}

    def __call__(self, one: Any, events: list[Any]) -> Any:
        for event in events:
            self.tracked[event.sequence_number] = one.checkpoints.track(event)
        yield None


def test_events_that_were_left_behind_finish_in_any_order_and_thread(site: Any, wait: Wait) -> None:
    store, left = site.stage.store(), Left()
    site.publish(6)
    run = site.processor(store, drain_timeout=0.1)
    run.deeds.steps["process_events"] = left
    run.call("start")
    wait(lambda: len(left.tracked) == 6)
    threads = [threading.Thread(target=left.tracked[number].done) for number in (1, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert run.processor.stats()["0"].position is None
    left.tracked[0].done()
    wait(lambda: site.row(store) == 3)
    left.tracked[0].done()
    left.tracked[4].done()
    wait(lambda: site.row(store) == 4)
    assert run.processor.stats()["0"].pending == 1


def test_only_events_in_the_hands_of_the_handler_can_be_left_behind(site: Any, wait: Wait) -> None:
    store, kept = site.stage.store(), []

    def steps(one: Any, events: list[Any]) -> Any:
        kept.extend(events)
        yield None

    site.publish(2)
    run = site.processor(store)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 1)
    with pytest.raises(InvalidRecordError, match="expected an event of the running call"):
        run.deeds.made[0].checkpoints.track(kept[0])


def test_no_more_events_are_given_than_may_be_left_behind(
    site: Any, wait: Wait, elapse: Wait
) -> None:
    store, left = site.stage.store(), Left()
    site.publish(30)
    run = site.processor(store, max_pending=4, max_batch_size=2)
    run.deeds.steps["process_events"] = left
    run.call("start")
    wait(lambda: len(left.tracked) >= 4)
    elapse(1)
    given = len(left.tracked)
    assert given in (4, 5)  # a batch may hold one event, and another be given with room for one
    for number in range(3, given):
        left.tracked[number].done()
    wait(lambda: len(left.tracked) > given)
    elapse(1)
    assert len(left.tracked) <= given + 2
    stopping = run.begin("stop")
    wait(lambda: run.processor._callbacks.is_stopping)
    for tracked in left.tracked.values():
        tracked.done()
    stopping.result(LIMIT)
    assert site.row(store) == max(left.tracked)


def test_an_event_that_was_given_up_is_read_again_by_the_next_claim(site: Any, wait: Wait) -> None:
    store, left = site.stage.store(), Left()
    site.publish(5)
    run = site.processor(store, max_pending=8)
    run.deeds.steps["process_events"] = left
    run.call("start")
    wait(lambda: len(left.tracked) == 5)
    for number in (0, 1, 3, 4):
        left.tracked[number].done()
    left.tracked[2].failed()
    wait(lambda: site.row(store) == 1)
    # The position stays; when too much waits behind it, the partition is claimed anew.
    left.tracked.clear()
    del run.deeds.steps["process_events"]
    site.publish(10)
    wait(lambda: "close" in run.deeds.names() or site.publish(1))
    wait(lambda: len(run.deeds.made) == 2 and run.processor.stats().get("0"))
    wait(lambda: run.deeds.numbers().count(2) == 2)
    top = max(run.deeds.numbers())
    wait(lambda: site.row(store) >= top)


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_a_with_finishes_the_event_and_an_error_gives_it_up(
    stage: Any, loop: Any, fails: bool
) -> None:
    kinds = AioPartitionSession, AioTrackedBatchEvent
    kind, tracked_event = kinds if stage.is_aio else (PartitionSession, TrackedBatchEvent)
    session = kind(("ns", "hub", "group", "0"), every(events=10), Tally(), None, 10, None, None)
    event = SimpleNamespace(sequence_number=0, offset="0")
    tracked = tracked_event(session, event)
    session.watermark.enter(tracked)

    def use() -> None:
        with tracked:
            if fails:
                raise OSError("of the worker")

    async def use_aio() -> None:
        async with tracked:
            if fails:
                raise OSError("of the worker")

    with pytest.raises(OSError, match="of the worker") if fails else nullcontext():
        loop.finished(use_aio() if stage.is_aio else use())
    assert (tracked.is_done, tracked.has_failed) == (not fails, fails)
    assert session.watermark.is_settled
    assert session.pending == fails
    tracked.done()
    assert session.pending == fails, "an event that was given up stays so"
