"""Processors of Arrow batches: an `EventProcessor` whose class has `process_batch`."""

import logging
from functools import partial
from typing import Any

import pytest

import eventhub_checkpoints as sync
from batch_processors import BadRowError, Stage, fails_for, hub, stage
from eventhub_checkpoints import ConfigurationError, every
from eventhub_checkpoints.dead_letters.dead_letter import DeadLetter
from waiting import eventually

__all__ = ["hub", "stage"]


def test_each_row_is_processed_once_in_order_and_saved(stage: Stage) -> None:
    stage.publish(500)
    stage.publish(300, "1")
    processor = stage.start()
    eventually(lambda: stage.saved() == {"0": 499, "1": 299})
    assert stage.handled == {"0": [*range(500)], "1": [*range(300)]}
    assert sorted(stage.log) == [("initialize", "0"), ("initialize", "1")]
    assert processor.healthy()
    assert {key: one.saved_position[0] for key, one in processor.stats().items()} == stage.saved()


def test_a_stop_closes_saves_and_releases(stage: Stage) -> None:
    stage.publish(10)
    processor = stage.start(policy=every(events=1000))
    eventually(lambda: len(stage.handled["0"]) == 10)
    eventually(lambda: len(stage.of("initialize")) == 2)
    stage.finished(processor.stop())
    assert sorted(stage.of("close")) == [("close", "0", "SHUTDOWN"), ("close", "1", "SHUTDOWN")]
    assert stage.saved() == {"0": 9}
    assert stage.owners() == {"0": "", "1": ""}


def test_who_starts_again_continues_after_what_was_saved(stage: Stage) -> None:
    stage.publish(10)
    processor = stage.start()
    eventually(lambda: stage.saved() == {"0": 9})
    stage.finished(processor.stop())
    stage.publish(5)
    stage.finished(processor.start())
    eventually(lambda: stage.saved() == {"0": 14})
    assert stage.handled["0"] == [*range(15)]


def test_of_a_batch_that_fails_each_row_is_passed_alone_and_poison_is_skipped(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.publish(20)
    stage.handle = fails_for(7)
    stage.start(attempts=2, on_poison="skip")
    eventually(lambda: stage.saved() == {"0": 19})
    assert sorted(stage.handled["0"]) == [each for each in range(20) if each != 7]
    assert "process_batch raised for event 7, attempt 2 of 2" in caplog.text
    assert "event 7 of partition 0 is skipped" in caplog.text
    assert ("error", BadRowError) in stage.log


def test_poison_stops_the_partition_before_it(stage: Stage) -> None:
    stage.publish(20)
    stage.handle = fails_for(7)
    processor = stage.start(attempts=2)
    eventually(lambda: processor.stopped)
    eventually(lambda: stage.saved() == {"0": 6})
    assert processor.stopped["0"].sequence_number == 7
    assert not processor.healthy()


def test_a_row_that_is_poison_becomes_a_dead_letter(stage: Stage) -> None:
    stage.publish(9, properties={"kind": "order"})
    stage.handle = fails_for(3)
    dead: list[DeadLetter] = []

    def keep(context: Any, event: Any, error: Exception) -> None:
        dead.append(DeadLetter.of(context, event, error))

    async def aio_keep(context: Any, event: Any, error: Exception) -> None:
        keep(context, event, error)

    stage.start(attempts=2, on_poison=aio_keep if stage.is_aio else keep)
    eventually(lambda: stage.saved() == {"0": 8})
    [letter] = dead
    assert (letter.partition_id, letter.sequence_number, letter.body) == ("0", 3, b"event")
    assert letter.properties == {"kind": "order"}
    assert letter.enqueued_time is not None
    assert letter.offset


def test_a_batch_can_be_saved_by_its_processor(stage: Stage) -> None:
    stage.publish(30)
    answers: list[bool] = []

    async def save(one: Any, batch: Any) -> None:
        answers.append(await one.checkpoints.update_checkpoint(batch))

    def handle(one: Any, batch: Any) -> Any:
        if stage.is_aio:
            return save(one, batch)
        answers.append(one.checkpoints.update_checkpoint(batch))
        return None

    stage.handle = handle
    stage.start(policy=None)
    eventually(lambda: stage.saved() == {"0": 29})
    assert all(answers)


def test_something_else_than_the_batch_of_the_call_is_refused(stage: Stage) -> None:
    stage.publish(1)
    stage.handle = lambda one, batch: one.checkpoints.update_checkpoint(batch.slice(0, 1))
    stage.start(policy=None, attempts=1)
    eventually(lambda: stage.errors)
    cause = stage.errors[0][1].__cause__
    assert "expected an event, the batch that was passed, or an offset" in str(cause)


def test_columns_that_are_not_chosen_are_no_obstacle(stage: Stage) -> None:
    stage.publish(12)
    seen: list[list[str]] = []
    stage.handle = lambda one, batch: seen.append(batch.schema.names)
    client = stage.client(columns=["body", "sequenceNumber"])
    stage.start(client=client)
    eventually(lambda: stage.saved() == {"0": 11})
    assert seen[0] == ["body", "sequenceNumber"]


def test_two_processors_share_a_hub_and_nothing_is_read_twice(stage: Stage) -> None:
    stage.publish(50)
    stage.publish(50, "1")
    stage.start()
    eventually(lambda: stage.saved() == {"0": 49, "1": 49})
    stage.start()
    eventually(lambda: len({*stage.owners().values()}) == 2 and all(stage.owners().values()))
    eventually(lambda: len(stage.of("initialize")) == 3)
    stage.publish(10)
    stage.publish(10, "1")
    eventually(lambda: stage.saved() == {"0": 59, "1": 59})
    assert stage.handled == {"0": [*range(60)], "1": [*range(60)]}


def test_an_idle_partition_calls_with_an_empty_batch(stage: Stage) -> None:
    stage.start(max_wait_time=0.05)
    eventually(lambda: stage.calls.count(0) > 3)
    assert stage.handled == {"0": [], "1": []}


def test_events_that_were_lost_end_the_processor(stage: Stage) -> None:
    stage.publish(10)
    first = stage.start()
    eventually(lambda: stage.saved() == {"0": 9})
    stage.finished(first.stop())
    stage.publish(10)
    stage.hub.trim("orders", "0", before=15)
    processor = stage.start()
    with pytest.raises(sync.DataLossError, match="5 events are lost"):
        stage.end_of(processor)


def test_a_class_with_both_handlers_is_refused(stage: Stage) -> None:
    class Both(stage.processor_class()):  # type: ignore[misc]
        def process_events(self, events: Any) -> None:
            """Handle events."""

    with pytest.raises(ConfigurationError, match="has process_events and process_batch; keep"):
        stage.make(processor=Both)


def test_a_class_without_a_handler_is_refused(stage: Stage) -> None:
    class Neither:
        def __init__(self, context: Any, checkpoints: Any) -> None:
            """Do nothing."""

    with pytest.raises(ConfigurationError, match="process_events or process_batch"):
        stage.make(processor=Neither)


def test_a_client_of_events_is_refused_for_batches(stage: Stage) -> None:
    client = partial(stage.official.from_connection_string, stage.text, "$Default")
    processor = stage.make(client=client)
    with pytest.raises(ConfigurationError, match="has process_batch, and client delivers events"):
        stage.finished(processor.start())


def test_a_client_of_batches_is_refused_for_events(stage: Stage) -> None:
    class Events(stage.package.PartitionProcessor):  # type: ignore[misc, name-defined]
        def process_events(self, events: Any) -> None:
            """Handle events."""

    processor = stage.make(processor=Events)
    with pytest.raises(ConfigurationError, match="client delivers Arrow batches"):
        stage.finished(processor.start())


def test_a_function_that_makes_the_wrong_processor_stops_it_all(stage: Stage) -> None:
    class Events(stage.package.PartitionProcessor):  # type: ignore[misc, name-defined]
        def process_events(self, events: Any) -> None:
            """Handle events."""

    processor = stage.start(processor=lambda *args: Events(*args))
    with pytest.raises(ConfigurationError, match="client delivers Arrow batches"):
        stage.end_of(processor)


@pytest.mark.parametrize(
    ("name", "value"), [("max_batch_size", 10), ("owner_level", 3), ("prefetch", 7)]
)
def test_an_option_of_the_other_client_is_refused(stage: Stage, name: str, value: int) -> None:
    processor = stage.make(**{name: value})
    with pytest.raises(ConfigurationError, match=f"{name} has no effect"):
        stage.finished(processor.start())


def test_an_argument_that_its_client_does_not_have_is_refused(stage: Stage) -> None:
    client = stage.client()(checkpoint_store=stage.store())
    with pytest.raises(ConfigurationError, match="partition_id"):
        stage.finished(client.receive_batch(print, partition_id="0"))


def test_a_client_that_is_ready_can_be_used(stage: Stage) -> None:
    stage.publish(5)
    store = stage.store()
    stage.start(client=stage.client()(checkpoint_store=store), store=store)
    eventually(lambda: stage.saved() == {"0": 4})


def test_an_error_of_the_hub_is_reported_and_the_partition_is_opened_again(stage: Stage) -> None:
    stage.publish(5)
    stage.start()
    eventually(lambda: stage.saved() == {"0": 4})
    stage.hub.detach_receivers("orders", condition="amqp:link:stolen")
    eventually(lambda: stage.of("close"))
    stage.publish(5)
    eventually(lambda: stage.saved() == {"0": 9})
    assert stage.handled["0"] == [*range(10)]


def test_calls_are_logged_under_the_name_of_the_handler(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    stage.publish(3)
    stage.handle = fails_for(1)
    stage.start(attempts=2, on_poison="skip")
    eventually(lambda: stage.saved() == {"0": 2})
    assert "process_batch raised for events 0 to 2, attempt 1 of 2" in caplog.text
