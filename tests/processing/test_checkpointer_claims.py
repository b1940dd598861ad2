"""What belongs to a claim is saved in that claim: before its partition is released, or never."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.eventhub import CloseReason

from eventhub_checkpoints import StaleCheckpointError, every
from eventhub_checkpoints.stores.memory._sync.store import MemoryRows
from variants import EVERY_CLIENT, ONLY_SIMULATED, ONLY_SYNC

Wait = Callable[..., Any]


@EVERY_CLIENT
def test_a_lost_partition_is_saved_where_the_store_goes_forward_only(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000))
    stage.publish(3)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 3))
    consumer.tracked["0"][0].done()
    consumer.tracked["0"][1].done()
    consumer.raises = RuntimeError("of the handler")
    stage.publish(1)
    wait(lambda: consumer.closed)
    assert consumer.closed == [("0", "OWNERSHIP_LOST")]
    assert store.saved["0"] == [1]
    wait(lambda: ("release", "0") in store.log)
    release = store.log.index(("release", "0"))
    assert store.log.index(("update", "0", 1)) < release


def test_a_lost_partition_is_not_saved_where_the_store_may_go_back(stage: Any, wait: Wait) -> None:
    store = stage.foreign_store()
    checkpointer = stage.checkpointer(store, every(events=1000))
    stage.publish(2)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 2))
    consumer.raises = RuntimeError("of the handler")
    stage.publish(1)
    wait(lambda: consumer.closed)
    assert store.saved == {}
    wait(lambda: consumer.arrived["0"].count(2) == 2)
    stage.close(consumer)
    assert store.saved["0"][-1] == 2, "what is read again is saved"


def test_a_write_under_way_ends_before_a_lost_partition_is_released(
    stage: Any, wait: Wait, elapse: Wait
) -> None:
    store = stage.foreign_store()
    checkpointer = stage.checkpointer(store, every(events=1))
    store.is_open.clear()
    stage.publish(1)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: store.begun)
    consumer.raises = RuntimeError("of the handler")
    stage.publish(1)
    elapse(3)
    assert consumer.closed == []
    store.is_open.set()
    wait(lambda: ("release", "0") in store.log)
    assert store.log.index(("update", "0", 0)) < store.log.index(("release", "0"))


def test_a_checkpoint_that_another_owner_has_passed_is_refused_and_counted(
    stage: Any, wait: Wait
) -> None:
    rows, seen = MemoryRows(), []
    store, other = stage.store(rows), stage.store(rows)
    checkpointer = stage.checkpointer(
        store, every(events=1), on_error=lambda *said: seen.append(said)
    )
    stage.publish(3)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 3))
    (session,) = checkpointer._sessions.open.values()
    row = dict(session.names, offset="9", sequence_number=2)
    stage.finished(other.update_checkpoint(row, force=True))
    consumer.tracked["0"][0].done()
    wait(lambda: seen)  # after it is counted
    assert checkpointer.stats()["0"].refused == 1
    assert isinstance(seen[0][1], StaleCheckpointError)
    assert checkpointer.stats()["0"].lag_events == 2
    assert checkpointer.healthy()
    assert store.saved == {}


def test_what_is_done_after_the_claim_has_ended_changes_nothing(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(3)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 3))
    before = dict(consumer.tracked["0"])
    consumer.raises = RuntimeError("of the handler")
    stage.publish(1)
    wait(lambda: len(consumer.opened) == 2 and consumer.arrived["0"].count(2) == 2)
    for tracked in before.values():
        tracked.done()
    stage.finished(checkpointer.flush())
    assert store.saved == {}
    assert checkpointer.stats()["0"].position is None
    for tracked in dict(consumer.tracked["0"]).values():
        tracked.done()
    wait(lambda: store.saved["0"])


@ONLY_SIMULATED
def test_a_handler_of_an_ended_claim_is_known_by_its_task(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    """Where receiving fails, a handler runs on, and the partition is claimed anew beside it."""
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.opened)
    stage.publish(2)
    wait(lambda: consumer.has("0", 2))
    context = consumer.opened[0]
    first, second = (tracked._event for tracked in consumer.tracked["0"].values())

    async def claim(
        event: Any, may_begin: asyncio.Event, tracked_events: list[Any]
    ) -> "asyncio.Task[None]":
        async def handler() -> None:
            await may_begin.wait()
            tracked_events.append(await checkpointer.track(context, event))

        await checkpointer.on_initialize(context)
        return asyncio.create_task(handler())

    async def run() -> None:
        late, early, old, new = asyncio.Event(), asyncio.Event(), [], []
        lost = await asyncio.create_task(claim(second, late, old))
        await checkpointer.on_close(context, CloseReason.OWNERSHIP_LOST)
        kept = await asyncio.create_task(claim(first, early, new))
        early.set()
        await kept
        late.set()
        await lost
        old[0].done()
        assert checkpointer.stats()["0"].pending == 1
        new[0].done()
        assert checkpointer.stats()["0"].position.sequence_number == 0

    stage.finished(run())
    assert "after its session has ended" in caplog.text
    wait(lambda: store.saved["0"] == [0])


@ONLY_SYNC
def test_an_event_before_its_partition_is_announced_is_in_the_same_claim(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(2)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 2))
    context = consumer.opened[0]
    events = [tracked._event for tracked in consumer.tracked["0"].values()]
    stage.close(consumer)
    first = checkpointer.track(context, events[0])
    checkpointer.on_initialize(context)
    second = checkpointer.track(context, events[1])
    second.done()
    assert checkpointer.stats()["0"].position is None
    first.done()
    assert checkpointer.stats()["0"].position.sequence_number == 1


@ONLY_SYNC
def test_an_event_while_its_partition_is_announced_is_in_the_same_claim(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    stage.publish(1)
    consumer = stage.start(store, stage.checkpointer(store))
    wait(lambda: consumer.has("0", 1))
    context, event = consumer.opened[0], consumer.tracked["0"][0]._event
    for _ in range(100):
        checkpointer = stage.checkpointer(store)
        both = threading.Barrier(2)

        def announce(checkpointer: Any = checkpointer, both: Any = both) -> None:
            both.wait()
            checkpointer.on_initialize(context)

        with ThreadPoolExecutor(1) as pool:
            announced = pool.submit(announce)
            both.wait()
            tracked = checkpointer.track(context, event)
            announced.result()
        assert checkpointer.stats()["0"].pending == 1
        tracked.done()


@EVERY_CLIENT
def test_a_store_that_is_not_ours_is_used_as_it_is(stage: Any, wait: Wait) -> None:
    store = stage.foreign_store()
    checkpointer = stage.checkpointer(store, every(events=2))
    stage.publish(5)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: store.saved["0"])
    wait(lambda: consumer.has("0", 5))
    stage.close(consumer)
    assert store.saved["0"][-1] == 4
    again = stage.start(store, checkpointer)
    stage.publish(1)
    wait(lambda: again.has("0", 1))
    assert again.arrived["0"] == [5]


def test_a_claim_that_overlaps_the_one_before_does_not_go_back_behind_it(
    stage: Any, wait: Wait
) -> None:
    """A sync client may list checkpoints and open a partition while the last one is written."""
    store = stage.foreign_store()
    checkpointer = stage.checkpointer(store, every(events=1))
    context = Context("0")
    stage.finished(checkpointer.on_initialize(context))
    stage.finished(checkpointer.track(context, Event(10))).done()
    wait(lambda: store.saved["0"] == [10])
    store.is_open.clear()
    stage.finished(checkpointer.track(context, Event(12))).done()
    wait(lambda: store.begun == 2)
    stage.finished(checkpointer.on_initialize(context))
    stage.finished(checkpointer.track(context, Event(11))).done()
    store.is_open.set()
    wait(lambda: checkpointer.stats()["0"].lag_events == 0)
    assert store.saved["0"] == [10, 12]
    stage.finished(checkpointer.track(context, Event(13))).done()
    wait(lambda: store.saved["0"] == [10, 12, 13])
    assert checkpointer.stats()["0"].saved == 3


class Context:
    """What a checkpointer asks a partition context."""

    fully_qualified_namespace, eventhub_name, consumer_group = "a.example", "orders", "$Default"

    def __init__(self, partition_id: str) -> None:
        self.partition_id = partition_id


class Event:
    """What a checkpointer asks an event."""

    def __init__(self, sequence_number: int) -> None:
        self.sequence_number, self.offset = sequence_number, str(sequence_number)


def rows_of(stage: Any, store: Any) -> dict[str, int]:
    """The stored sequence number by consumer group."""
    return {
        row["consumer_group"]: row["sequence_number"]
        for scope in stage.finished(store.inner.list_scopes())
        for row in stage.finished(store.inner.list_checkpoints(*scope))
    }


def test_clients_of_two_consumer_groups_have_claims_of_their_own(stage: Any, wait: Wait) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1), drain_timeout=30)
    stage.publish(6)
    orders = stage.start(store, checkpointer, finishes=True)
    audit = stage.start(store, checkpointer, consumer_group="audit")
    wait(lambda: orders.has("0", 6) and audit.has("0", 6))
    audit.tracked["0"][0].done()
    wait(lambda: rows_of(stage, store) == {"$default": 5, "audit": 0})
    names = {key.split("/")[-2]: stats.pending for key, stats in checkpointer.stats().items()}
    assert names == {"$Default": 0, "audit": 5}
    stage.close(orders)
    assert list(checkpointer.stats()) == ["0"], "the other is open still"
    for tracked in audit.tracked["0"].values():
        tracked.done()
    stage.close(audit)
    assert rows_of(stage, store) == {"$default": 5, "audit": 5}
