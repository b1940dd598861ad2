"""Memory is what is being processed, however many events have passed."""

import asyncio
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from variants import SIMULATED

EVENTS, WINDOW = 20_000, 500
CONTEXT = SimpleNamespace(
    fully_qualified_namespace="localhost",
    eventhub_name="orders",
    consumer_group="$Default",
    partition_id="0",
)


def event(number: int) -> Any:
    return SimpleNamespace(sequence_number=number, offset=str(number))


async def in_tasks(checkpointer: Any, first: int, last: int) -> None:
    tracked_events = []
    for number in range(first, last):
        tracked_events.append(await checkpointer.track(CONTEXT, event(number)))
        if len(tracked_events) == WINDOW:
            for tracked in reversed(tracked_events):
                tracked.done()
            tracked_events.clear()
            await asyncio.sleep(0)


def in_threads(checkpointer: Any, first: int, last: int) -> None:
    tracked_events = []
    for number in range(first, last):
        tracked_events.append(checkpointer.track(CONTEXT, event(number)))
        if len(tracked_events) == WINDOW:
            for tracked in reversed(tracked_events):
                tracked.done()
            tracked_events.clear()


@pytest.mark.parametrize("variant", [SIMULATED, "sync"], indirect=True)
def test_memory_does_not_grow_with_the_events(stage: Any) -> None:
    checkpointer = stage.checkpointer(stage.store())
    work = in_tasks if stage.is_aio else in_threads
    stage.finished(work(checkpointer, 0, 2_000))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        stage.finished(work(checkpointer, 2_000, EVENTS))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 6 * EVENTS, "the smallest object takes more for each event"
    assert checkpointer.stats()["0"].position.sequence_number == EVENTS - 1
