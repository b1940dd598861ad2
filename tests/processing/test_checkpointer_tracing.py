"""Spans of events that a Checkpointer tracks."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

from eventhub_checkpoints import CheckpointStoreError, every
from telemetry_records import Records, id_of, links_of, parent_of, recording

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
CONTEXT = SimpleNamespace(
    fully_qualified_namespace="ns", eventhub_name="orders", consumer_group="g", partition_id="0"
)


class Event:
    """What a checkpointer reads of an event."""

    def __init__(self, number: int) -> None:
        self.sequence_number, self.offset = number, str(number)
        self.properties = {b"traceparent": f"00-{TRACE:032x}-{number + 1:016x}-01".encode()}


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as records:
        yield records


def in_block(stage: Any, checkpointer: Any, event: Event, work: Callable[[], None]) -> None:
    """Process an event in the block of `track`."""

    async def aio() -> None:
        async with checkpointer.track(CONTEXT, event):
            await asyncio.sleep(0)
            work()

    if stage.is_aio:
        stage.finished(aio())
        return
    with checkpointer.track(CONTEXT, event):
        work()


def tracked(stage: Any, checkpointer: Any, event: Event) -> Any:
    """Track an event that is finished later."""

    async def aio() -> Any:
        return await checkpointer.track(CONTEXT, event)

    return stage.finished(aio()) if stage.is_aio else checkpointer.track(CONTEXT, event)


def test_an_event_is_linked_to_its_producer_and_is_current_in_its_block(
    stage: Any, records: Records, wait: Callable[..., Any]
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    in_block(stage, checkpointer, Event(4), lambda: records.tracer.start_span("mine").end())
    assert not trace.get_current_span().get_span_context().is_valid
    wait(lambda: records.spans("checkpoint"))
    (span,), (mine,) = records.spans("process"), records.spans("mine")
    assert links_of(span) == [(TRACE, 5)]
    assert span.name == "process orders"
    assert span.kind.name == "CONSUMER"
    assert (span.attributes or {})["eventhub_checkpoints.sequence_number"] == 4
    assert parent_of(mine) == id_of(span)
    assert parent_of(records.spans("checkpoint")[0]) == id_of(span)


def test_an_exception_in_the_block_is_the_error_of_the_span(stage: Any, records: Records) -> None:
    def work() -> None:
        raise KeyError("order")

    checkpointer = stage.checkpointer(stage.store())
    with pytest.raises(KeyError):
        in_block(stage, checkpointer, Event(4), work)
    (span,) = records.spans("process")
    assert (span.attributes or {})["error.type"] == "KeyError"
    assert not trace.get_current_span().get_span_context().is_valid


def test_an_event_without_a_block_has_a_span_until_it_is_done_in_any_thread(
    stage: Any, records: Records
) -> None:
    checkpointer = stage.checkpointer(stage.store())
    first, second = (tracked(stage, checkpointer, Event(number)) for number in (4, 5))
    assert not trace.get_current_span().get_span_context().is_valid
    thread = threading.Thread(target=second.done)
    thread.start()
    thread.join()
    first.failed()
    failed, passed = records.spans("process")
    assert (failed.attributes or {})["error.type"] == "_OTHER"
    assert links_of(passed) == [(TRACE, 6)]
    (consumed,) = records.points("messaging.client.consumed.messages")
    assert consumed.value == 2


def test_an_event_that_waits_for_room_has_no_span_yet(stage: Any, records: Records) -> None:
    checkpointer = stage.checkpointer(stage.store(), max_pending=1)
    failing = tracked(stage, checkpointer, Event(4))
    failing.failed()
    with pytest.raises(CheckpointStoreError):
        tracked(stage, checkpointer, Event(5))
    (span,) = records.spans("process")
    assert links_of(span) == [(TRACE, 5)]
