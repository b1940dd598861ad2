"""What a checkpointer refuses, and what it says in the log."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, InvalidRecordError, every
from eventhub_checkpoints.processing._sync.tracked_event import ANNOUNCED_WITHIN
from variants import ONLY_SIMULATED

Wait = Callable[..., Any]


def test_an_event_that_is_not_tracked_is_said_once(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer = stage.checkpointer(stage.store())
    for _ in range(3):
        checkpointer.done(object())
    assert caplog.text.count("done() was called with a value of type object; expected an") == 1


def tracked(stage: Any, checkpointer: Any, context: Any, event: Any) -> Any:
    async def inside() -> Any:
        return await checkpointer.track(context, event)

    return stage.finished(inside()) if stage.is_aio else checkpointer.track(context, event)


MISSING = "pass **checkpointer.handlers to its receive()"


def test_a_client_without_the_handlers_is_told_of_them_once(
    stage: Any, wait: Wait, elapse: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    stage.publish(1)
    consumer = stage.start(store, stage.checkpointer(store))
    wait(lambda: consumer.has("0", 1))
    context, event = consumer.opened[0], consumer.tracked["0"][0]._event
    assert "handlers" not in caplog.text
    checkpointer = stage.checkpointer(store)
    tracked(stage, checkpointer, context, event).done()
    # A sync client may deliver the first event before it has announced the partition.
    assert caplog.text.count(MISSING) == (1 if stage.is_aio else 0)
    elapse(ANNOUNCED_WITHIN + 0.1)
    for _ in range(3):
        tracked(stage, checkpointer, context, event).done()
    assert caplog.text.count(MISSING) == 1


def test_closing_tells_a_client_without_the_handlers_of_them(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    stage.publish(1)
    consumer = stage.start(store, stage.checkpointer(store))
    wait(lambda: consumer.has("0", 1))
    context, event = consumer.opened[0], consumer.tracked["0"][0]._event
    checkpointer = stage.checkpointer(store)
    tracked(stage, checkpointer, context, event).done()
    stage.finished(checkpointer.close())
    assert caplog.text.count(MISSING) == 1


def test_a_checkpointer_that_was_not_used_has_nothing_to_say(
    stage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer = stage.checkpointer(stage.store())
    stage.finished(checkpointer.close())
    assert not caplog.text


@pytest.mark.parametrize(("context", "said"), [(None, "None"), ("event", "of type EventData")])
def test_what_is_no_partition_context_is_refused(
    stage: Any, wait: Wait, context: Any, said: str
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store)
    stage.publish(1)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 1))
    event = consumer.tracked["0"][0]._event
    swapped = event if context == "event" else None
    with pytest.raises(
        InvalidRecordError, match=f"partition_context is {said}; expected the context"
    ):
        tracked(stage, checkpointer, swapped, consumer.opened[0])


@pytest.mark.parametrize(("event", "said"), [(None, "None"), ([], "of type list")])
def test_what_is_no_event_is_refused(stage: Any, wait: Wait, event: Any, said: str) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store)
    stage.publish(1)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 1))
    with pytest.raises(InvalidRecordError, match=f"event is {said}; expected one event"):
        tracked(stage, checkpointer, consumer.opened[0], event)
    assert checkpointer.stats()["0"].pending == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", 5),
        ("max_pending", 0),
        ("max_pending", True),
        ("max_pending", 1.5),
        ("max_unsaved", 0),
        ("drain_timeout", -1),
        ("drain_timeout", "30s"),
        ("write_timeout", 0),
        ("unhealthy_after", 0),
        ("unhealthy_after", None),
        ("on_error", 1),
        ("on_error", asyncio.sleep),
    ],
)
@ONLY_SIMULATED
def test_a_setting_that_cannot_work_is_refused_by_name(stage: Any, name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        stage.checkpointer(stage.store(), **{name: value})


def test_only_warnings_are_logged_where_all_is_well(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "eventhub_checkpoints")
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(20)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: store.saved["0"][-1:] == [19])
    stage.close(consumer)
    stage.finished(checkpointer.close())
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
