"""What is seen of processors of Arrow batches: stalls, spans, dead letters, and an end in time."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_processors import ONLY_AIO, BadRowError, Stage, fails_for, hub, stage
from eventhub_checkpoints import InvalidCheckpointError, aio, every
from eventhub_checkpoints.aio.dead_letters import DeadLetterFile as AioDeadLetterFile
from eventhub_checkpoints.consume import partition_batch
from eventhub_checkpoints.dead_letters import DeadLetterFile
from telemetry_records import Records, id_of, links_of, parent_of, recording
from waiting import LIMIT, eventually

__all__ = ["hub", "stage"]

TRACE = 0x0AF7651916CD43DD8448EB211C80319C


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Not set; set after the test, so that nothing hangs on."""
    event = threading.Event()
    yield event
    event.set()


def held_by(stage: Stage, gate: threading.Event) -> Callable[[Any, Any], Any]:
    """A handler that waits for a gate."""

    async def wait() -> None:
        await asyncio.to_thread(gate.wait, LIMIT)

    def handle(one: Any, batch: Any) -> Any:
        return wait() if stage.is_aio else gate.wait(LIMIT) and None

    return handle


# Stalls


def test_a_handler_that_hangs_is_a_stall_of_its_partition(
    stage: Stage, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    stage.publish(5)
    stage.handle = held_by(stage, gate)
    processor = stage.start(stalled_after=0.5)
    eventually(lambda: "partition 0 has stalled (handler)" in caplog.text)
    assert not processor.healthy()
    assert "events were received, and none was finished" in caplog.text
    assert "partition 1 has stalled" not in caplog.text
    gate.set()
    eventually(lambda: stage.saved() == {"0": 4})
    eventually(processor.healthy)
    assert "partition 0 continues after a stall" in caplog.text


def test_the_line_that_a_handler_has_reached_is_known(stage: Stage, gate: threading.Event) -> None:
    called = threading.Event()

    async def wait_here() -> None:
        called.set()
        await asyncio.to_thread(gate.wait, LIMIT)

    def handle(one: Any, batch: Any) -> Any:
        if stage.is_aio:
            return wait_here()
        called.set()
        return gate.wait(LIMIT) and None

    stage.handle = handle
    stage.publish(5)
    processor = stage.start()
    assert called.wait(LIMIT)
    source = processor._callbacks._open_handler("0").session.source
    # A task of its own runs the handler of aio; the client waits for that.
    reached = "HandlerTask.run" if stage.is_aio else "wait"
    eventually(lambda: reached in (source.handler() or ""))
    assert processor._callbacks._open_handler("1").session.source.handler() is None
    gate.set()
    eventually(lambda: source.handler() is None)


def test_a_handler_that_hangs_holds_up_no_other_partition(
    stage: Stage, gate: threading.Event
) -> None:
    hold = held_by(stage, gate)
    stage.handle = lambda one, batch: hold(one, batch) if one.context.partition_id == "0" else None
    stage.publish(5)
    stage.start()
    eventually(lambda: len(stage.of("initialize")) == 2)
    for count in (5, 10):
        stage.publish(5, "1")
        eventually(lambda count=count: stage.saved() == {"1": count - 1})
    assert stage.handled["0"] == []


# The end


def test_a_stop_with_a_time_limit_says_that_a_handler_is_still_running(
    stage: Stage, gate: threading.Event
) -> None:
    called = threading.Event()
    hold = held_by(stage, gate)

    def handle(one: Any, batch: Any) -> Any:
        called.set()
        return hold(one, batch)

    stage.handle = handle
    stage.publish(5)
    processor = stage.start()
    assert called.wait(LIMIT)
    with pytest.raises(TimeoutError, match="did not stop within"):
        stage.finished(processor.stop(timeout=0.2))
    gate.set()
    stage.finished(processor.stop())
    assert stage.handled["0"] == [*range(5)]
    assert stage.saved() == {"0": 4}
    assert stage.owners() == {"0": "", "1": ""}


@ONLY_AIO  # a thread cannot be cancelled
def test_a_handler_that_takes_longer_than_the_drain_is_cancelled(stage: Stage) -> None:
    called, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    stage.handle = lambda one, batch: wait()
    stage.publish(5)
    processor = stage.start(drain_timeout=0.1)
    assert called.wait(LIMIT)
    stage.finished(processor.stop())
    assert cancelled.is_set()
    assert stage.saved() == {}
    assert stage.owners() == {"0": "", "1": ""}


def test_a_handler_that_stops_its_processor_ends_it(stage: Stage) -> None:
    """It cannot wait for the end, which waits for it."""

    async def stop_aio() -> None:
        await processor.stop()

    def handle(one: Any, batch: Any) -> Any:
        return stop_aio() if stage.is_aio else processor.stop()

    stage.handle = handle
    processor = stage.make()
    stage.publish(5)
    stage.finished(processor.start())
    stage.finished(processor.wait())
    stage.finished(processor.stop())
    assert stage.handled["0"] == [*range(5)]
    assert stage.saved() == {"0": 4}


def test_a_partition_that_is_handed_over_saves_first(stage: Stage) -> None:
    stage.publish(50)
    stage.publish(50, "1")
    stage.start(policy=every(events=1_000_000))
    eventually(lambda: stage.handled == {"0": [*range(50)], "1": [*range(50)]})
    assert stage.saved() == {}
    stage.start()
    eventually(lambda: stage.saved())
    ((moved, number),) = stage.saved().items()
    assert number == 49
    stage.publish(5, moved)
    eventually(lambda: stage.handled[moved] == [*range(55)])
    assert ("close", moved, "OWNERSHIP_LOST") in stage.log


# Positions


@pytest.mark.parametrize("way", ["raise", "restart"])
def test_a_position_that_the_hub_does_not_have_is_found(stage: Stage, way: Any) -> None:
    stage.publish(20)
    first = stage.start()
    eventually(lambda: stage.saved() == {"0": 19})
    stage.finished(first.stop())
    stage.handled.clear()
    stage.hub.recreate("orders", 2)
    stage.publish(5)
    processor = stage.start(on_invalid_checkpoint=way)
    if way == "restart":
        eventually(lambda: stage.handled["0"] == [*range(5)])
        eventually(lambda: stage.saved() == {"0": 4})
    else:
        with pytest.raises(InvalidCheckpointError):
            stage.end_of(processor)


@pytest.mark.parametrize(
    ("start", "first"), [(3, 4), ("300", None), ({"0": 7, "1": 1}, 8), (lambda _: 5, 6)]
)
def test_a_starting_position_is_that_of_the_other_client(
    stage: Stage, start: Any, first: int | None
) -> None:
    stage.publish(10)
    stage.publish(10, "1")
    stage.start(starting_position=start)
    eventually(lambda: stage.handled["0"] and stage.handled["0"][-1] == 9)
    if first is not None:
        assert stage.handled["0"] == [*range(first, 10)]


def test_an_empty_batch_has_no_position_to_save(stage: Stage) -> None:
    answers: list[tuple[int, bool]] = []

    async def save(one: Any, batch: Any) -> None:
        answers.append((batch.num_rows, await one.checkpoints.update_checkpoint(batch)))

    def handle(one: Any, batch: Any) -> Any:
        if stage.is_aio:
            return save(one, batch)
        answers.append((batch.num_rows, one.checkpoints.update_checkpoint(batch)))
        return None

    stage.handle = handle
    stage.start(policy=None, max_wait_time=0.05)
    eventually(lambda: (0, False) in answers)
    stage.publish(3)
    eventually(lambda: stage.saved() == {"0": 2})
    assert stage.errors == []
    assert stage.of("error") == []


# Dead letters


def test_rows_that_are_poison_are_kept_in_a_file(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    stage.publish(20, properties={"kind": "order"}, partition_key="key")
    stage.handle = fails_for(3, 11)
    sink: Any = AioDeadLetterFile(path) if stage.is_aio else DeadLetterFile(path)
    stage.start(attempts=2, on_poison=sink)
    eventually(lambda: stage.saved() == {"0": 19})
    kept = [each.dead_letter for each in DeadLetterFile(path).dead_letters()]
    assert [each.sequence_number for each in kept] == [3, 11]
    assert {each.partition_id for each in kept} == {"0"}
    assert {each.body for each in kept} == {b"event"}
    assert {each.partition_key for each in kept} == {"key"}
    assert [each.properties for each in kept] == [{"kind": "order"}] * 2
    assert BadRowError.__name__ in kept[0].error_type
    assert sorted(stage.handled["0"]) == [each for each in range(20) if each not in (3, 11)]


def test_no_row_is_passed_more_often_than_attempts(stage: Stage) -> None:
    passed: list[list[int]] = []
    fails = fails_for(2)

    def handle(one: Any, batch: Any) -> None:
        passed.append(batch["sequenceNumber"].to_pylist())
        fails(one, batch)

    stage.handle = handle
    stage.publish(5)
    stage.start(attempts=3, on_poison="skip", client=stage.client(max_wait=0.5))
    eventually(lambda: stage.saved() == {"0": 4})
    counts = [sum(number in each for each in passed) for number in range(5)]
    assert counts[2] == 3
    assert max(counts) == 3


def test_a_handler_that_saves_rows_of_a_batch_that_fails_gets_only_the_others_again(
    stage: Stage,
) -> None:
    """It has finished them: passed again, they would be processed twice."""
    passed: list[list[int]] = []

    def position(batch: Any) -> dict[str, Any]:
        return {"offset": batch["offset"][2].as_py(), "sequence_number": 2}

    async def save(one: Any, batch: Any) -> None:
        await one.checkpoints.update_checkpoint(**position(batch))
        raise BadRowError

    def handle(one: Any, batch: Any) -> Any:
        passed.append(batch["sequenceNumber"].to_pylist())
        if len(passed) > 1:
            return None
        if stage.is_aio:
            return save(one, batch)
        one.checkpoints.update_checkpoint(**position(batch))
        raise BadRowError

    stage.handle = handle
    stage.publish(5)
    stage.start(client=stage.client(max_wait=3600.0, max_rows=5))
    eventually(lambda: stage.saved() == {"0": 4})
    assert passed == [[0, 1, 2, 3, 4], [3], [4]]


# Rows as events


def test_a_batch_that_is_processed_is_made_no_events_of(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is what makes it fast; the first and the last are needed for its position."""
    made: list[int] = []
    make = partition_batch.event_of

    def noted(row: Any, number: int, offset: str | None) -> Any:
        made.append(number)
        return make(row, number, offset)

    monkeypatch.setattr(partition_batch, "event_of", noted)
    stage.publish(5_000)
    stage.start(client=stage.client(max_rows=1_000, max_wait=3600.0))
    eventually(lambda: stage.saved() == {"0": 4_999})
    assert {number % 1_000 for number in made} == {0, 999}


# Spans


@pytest.fixture
def records() -> Iterator[Records]:
    with recording() as records:
        yield records


def test_a_batch_is_linked_to_the_producers_of_its_rows(stage: Stage, records: Records) -> None:
    for span in (1, 2, 3):
        header = f"00-{TRACE:032x}-{span:016x}-01"
        stage.publish(1, properties={"traceparent": header})
    stage.start(client=stage.client(max_rows=3, max_wait=3600.0))
    eventually(lambda: stage.saved() == {"0": 2})
    stage.stop()
    (processed,) = records.spans("process")
    assert links_of(processed) == [(TRACE, number) for number in (1, 2, 3)]
    attributes = processed.attributes or {}
    assert attributes["messaging.batch.message_count"] == 3
    assert attributes["messaging.destination.partition.id"] == "0"
    (saved,) = records.spans("checkpoint")
    assert parent_of(saved) == id_of(processed)


def test_a_batch_without_its_properties_has_a_span_without_links(
    stage: Stage, records: Records
) -> None:
    stage.publish(3, properties={"traceparent": f"00-{TRACE:032x}-{1:016x}-01"})
    stage.start(client=stage.client(columns=["sequenceNumber"], max_rows=3, max_wait=3600.0))
    eventually(lambda: stage.saved() == {"0": 2})
    stage.stop()
    (processed,) = records.spans("process")
    assert links_of(processed) == []
    assert (processed.attributes or {})["messaging.batch.message_count"] == 3


def test_a_failure_is_that_of_its_span(stage: Stage, records: Records) -> None:
    stage.publish(1)
    stage.handle = fails_for(0)
    stage.start(attempts=1, on_poison="skip")
    eventually(lambda: stage.saved() == {"0": 0})
    stage.stop()
    (processed,) = records.spans("process")
    assert processed.status.status_code.name == "ERROR"
    assert "BadRowError" in str((processed.attributes or {})["error.type"])


def test_events_received_are_counted(stage: Stage, records: Records) -> None:
    stage.publish(7)
    stage.start()
    eventually(lambda: stage.saved() == {"0": 6})
    stage.stop()
    points = records.points("messaging.client.consumed.messages")
    assert sum(point.value for point in points) == 7


# Logs


@ONLY_AIO
def test_a_blocking_handler_is_reported_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    class Plain(aio.PartitionProcessor):
        def process_batch(self, batch: Any) -> None:
            stage.handled[self.context.partition_id] += batch["sequenceNumber"].to_pylist()

    caplog.set_level(logging.WARNING)
    stage.publish(5)
    stage.start(processor=Plain)
    eventually(lambda: stage.saved() == {"0": 4})
    stage.publish(5)
    eventually(lambda: stage.saved() == {"0": 9})
    assert caplog.text.count("process_batch of ") == 1
    assert "is a plain function: while it runs, the event loop stands still" in caplog.text
