"""Memory is what is being processed, however many events have passed."""

import asyncio
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

EVENTS, WINDOW = 300_000, 500
CONTEXT = SimpleNamespace(
    fully_qualified_namespace="localhost",
    eventhub_name="orders",
    consumer_group="$Default",
    partition_id="0",
)


def event(number: int) -> Any:
    return SimpleNamespace(sequence_number=number, offset=str(number))


async def in_tasks(checkpointer: Any, first: int, last: int) -> None:
    tickets = []
    for number in range(first, last):
        tickets.append(await checkpointer.track(CONTEXT, event(number)))
        if len(tickets) == WINDOW:
            for ticket in reversed(tickets):
                ticket.done()
            tickets.clear()
            await asyncio.sleep(0)


def in_threads(checkpointer: Any, first: int, last: int) -> None:
    tickets = []
    for number in range(first, last):
        tickets.append(checkpointer.track(CONTEXT, event(number)))
        if len(tickets) == WINDOW:
            for ticket in reversed(tickets):
                ticket.done()
            tickets.clear()


@pytest.mark.parametrize("variant", ["sync", "aio"])
def test_memory_does_not_grow_with_the_events(stage: Any) -> None:
    checkpointer = stage.checkpointer(stage.store())
    work = in_tasks if stage.is_aio else in_threads
    stage.finished(work(checkpointer, 0, 10_000))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        stage.finished(work(checkpointer, 10_000, EVENTS))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200_000
    assert checkpointer.stats()["0"].position.sequence_number == EVENTS - 1
