"""Handlers that raise: attempts, then the one event that cannot be processed."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import PoisonError
from unspeakable import SHOWN, UnspeakableError
from variants import EVERY_CLIENT, ONLY_SIMULATED

Wait = Callable[..., Any]
ENDED = "process_events ended"


class BadEventError(Exception):
    """What a handler raises."""


def poison(*numbers: int, error: Callable[[], BaseException] = BadEventError) -> Any:
    """A handler that cannot process these events."""

    def steps(one: Any, events: list[Any]) -> Any:
        yield None
        if any(event.sequence_number in numbers for event in events):
            raise error()

    return steps


def test_a_handler_that_raises_for_a_while_loses_nothing(site: Any, wait: Wait) -> None:
    store, fails = site.stage.store(), [BadEventError(str(at)) for at in range(4)]
    errors = list(fails)

    def steps(one: Any, events: list[Any]) -> Any:
        yield None
        if fails:
            raise fails.pop(0)

    site.publish(5)
    run = site.processor(store)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 4)
    assert run.deeds.numbers(ENDED) == list(range(5))
    assert [args[0] for args in run.deeds.all("process_error")] == errors
    assert run.deeds.errors == []
    assert run.processor.healthy()


@EVERY_CLIENT
def test_only_the_poison_is_left_and_the_partition_is_stopped_before_it(
    site: Any, wait: Wait
) -> None:
    store = site.stage.store()
    site.publish(10)
    run = site.processor(store, attempts=2)
    run.deeds.steps["process_events"] = poison(6)
    run.call("start")
    wait(lambda: run.deeds.errors)  # after the partition is stopped
    wait(lambda: site.row(store) == 5)
    (stopped,) = run.processor.stopped.values()
    assert isinstance(stopped, PoisonError)
    assert (stopped.partition_id, stopped.sequence_number) == ("0", 6)
    assert isinstance(stopped.__cause__, BadEventError)
    assert run.deeds.errors == [("0", stopped)]
    assert not run.processor.healthy()
    # It stays stopped, also when it is claimed anew, and does not go round in circles.
    given = len(run.deeds.numbers())
    site.hub.detach_receivers("orders", condition="amqp:link:stolen")
    wait(lambda: "close ended" in run.deeds.names())
    claims = run.deeds.names().count("claim")
    site.publish(5)
    wait(lambda: run.deeds.names().count("claim") > claims + 3)
    assert len(run.deeds.numbers()) == given
    assert len(run.deeds.made) == 1
    run.call("stop")
    assert sorted(set(run.deeds.numbers(ENDED))) == list(range(6))
    assert site.row(store) == 5
    # Who starts it again gets it again.
    del run.deeds.steps["process_events"]
    run.call("start")
    wait(lambda: site.row(store) == 14)
    assert run.processor.healthy()
    assert set(run.deeds.numbers(ENDED)) == set(range(15))


def test_poison_is_skipped_on_request(site: Any, wait: Wait, caplog: Any) -> None:
    store = site.stage.store()
    site.publish(10)
    run = site.processor(store, attempts=2, on_poison="skip")
    run.deeds.steps["process_events"] = poison(3, 9)
    run.call("start")
    wait(lambda: site.row(store) == 9)
    assert sorted(run.deeds.numbers(ENDED)) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert run.processor.healthy()
    assert "event 3 of partition 0 is skipped" in caplog.text


def test_poison_is_handed_to_a_dead_letter_queue(site: Any, wait: Wait) -> None:
    store, dead = site.stage.store(), []

    def queue(context: Any, event: Any, error: Exception) -> None:
        dead.append((context.partition_id, event.sequence_number, type(error)))

    async def aio_queue(context: Any, event: Any, error: Exception) -> None:
        queue(context, event, error)

    site.publish(10)
    on_poison = aio_queue if site.is_aio else queue
    run = site.processor(store, attempts=1, on_poison=on_poison)
    run.deeds.steps["process_events"] = poison(0, 4)
    run.call("start")
    wait(lambda: site.row(store) == 9)
    assert dead == [("0", 0, BadEventError), ("0", 4, BadEventError)]
    assert run.processor.stopped == {}


def test_a_dead_letter_queue_that_refuses_stops_the_partition(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def refuses(context: Any, event: Any, error: Exception) -> None:
        raise OSError("the queue is full")

    site.publish(5)
    run = site.processor(store, attempts=1, on_poison=refuses)
    run.deeds.steps["process_events"] = poison(2)
    run.call("start")
    wait(lambda: site.row(store) == 1 and run.processor.stopped)
    told = [args[0] for args in run.deeds.all("process_error")]
    assert isinstance(told[-1], OSError)
    assert run.processor.stopped["0"].sequence_number == 2


@ONLY_SIMULATED
def test_an_aio_handler_that_is_cancelled_by_itself_has_failed(site: Any, wait: Wait) -> None:
    store, ways = site.stage.store(), ["cancels itself", "raises", "awaits what was cancelled"]

    async def cancelled(way: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        if way == "raises":
            raise asyncio.CancelledError
        if way == "cancels itself":
            task.cancel()
            await asyncio.Event().wait()
        other = asyncio.ensure_future(asyncio.Event().wait())
        other.cancel()
        await other

    def steps(one: Any, events: list[Any]) -> Any:
        yield cancelled(ways.pop(0)) if ways else None

    site.publish(3)
    run = site.processor(store)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 2)
    told = [args[0] for args in run.deeds.all("process_error")]
    assert [type(error) for error in told] == [RuntimeError] * 3
    assert "was cancelled" in str(told[0])
    assert "close" not in run.deeds.names()


def test_what_was_acknowledged_is_not_given_again(site: Any, wait: Wait) -> None:
    store = site.stage.store()

    def steps(one: Any, events: list[Any]) -> Any:
        numbers = [event.sequence_number for event in events]
        if 3 in numbers:
            yield one.checkpoints.update_checkpoint(events[numbers.index(3)])
        yield None
        if 7 in numbers:
            raise BadEventError

    site.publish(8)
    run = site.processor(store, attempts=2)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: run.processor.stopped and site.row(store) == 6)
    assert [number for number in run.deeds.numbers() if number <= 3] == [0, 1, 2, 3]


def warnings_of(caplog: Any) -> list[str]:
    """What was logged about calls that raised."""
    return [
        record.getMessage() for record in caplog.records if "process_events" in record.getMessage()
    ]


def test_a_batch_that_fails_is_passed_once_and_then_each_event_alone(
    site: Any, wait: Wait, caplog: Any
) -> None:
    store = site.stage.store()
    site.publish(5)
    run = site.processor(store, attempts=3, on_poison="skip")
    run.deeds.steps["process_events"] = poison(1, 4)
    run.call("start")
    wait(lambda: site.row(store) == 4)
    calls = [(0, 1, 2, 3, 4), (0,), (1,), (1,), (2,), (3,), (4,), (4,)]
    assert run.deeds.all("process_events") == calls
    raised = "partition 0: process_events raised for"
    assert warnings_of(caplog) == [
        f"{raised} events 0 to 4, attempt 1 of 3; from now on each of them is passed alone",
        f"{raised} event 1, attempt 2 of 3",
        f"{raised} event 1, attempt 3 of 3",
        f"{raised} event 4, attempt 2 of 3",
        f"{raised} event 4, attempt 3 of 3",
    ]
    # The next batch is passed as a whole again.
    site.publish(3)
    wait(lambda: site.row(store) == 7)
    assert run.deeds.all("process_events")[len(calls) :] == [(5, 6, 7)]


@EVERY_CLIENT
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_no_event_is_passed_more_often_than_attempts_says(
    site: Any, wait: Wait, attempts: int
) -> None:
    store = site.stage.store()
    site.publish(10)
    run = site.processor(store, attempts=attempts, on_poison="skip")
    run.deeds.steps["process_events"] = poison(3, 9)
    run.call("start")
    wait(lambda: site.row(store) == 9)
    times = Counter(run.deeds.numbers())
    assert {number: times[number] for number in (3, 9)} == {3: attempts, 9: attempts}
    assert max(times[number] for number in range(10) if number not in (3, 9)) <= min(2, attempts)
    assert sorted(run.deeds.numbers(ENDED)) == [0, 1, 2, 4, 5, 6, 7, 8]


def test_with_one_attempt_each_event_is_passed_alone_which_is_said_at_the_start(
    site: Any, wait: Wait, caplog: Any
) -> None:
    store = site.stage.store()
    site.publish(4)
    run = site.processor(store, attempts=1, on_poison="skip")
    run.deeds.steps["process_events"] = poison(2)
    run.call("start")
    wait(lambda: site.row(store) == 3)
    assert run.deeds.all("process_events") == [(0,), (1,), (2,), (3,)]
    said, raised = warnings_of(caplog)
    assert said.startswith("attempts=1 leaves no second call")
    assert raised == "partition 0: process_events raised for event 2, attempt 1 of 1"


def test_with_one_attempt_and_batches_of_one_nothing_is_said(
    site: Any, wait: Wait, caplog: Any
) -> None:
    store = site.stage.store()
    site.publish(2)
    run = site.processor(store, attempts=1, max_batch_size=1)
    run.call("start")
    wait(lambda: site.row(store) == 1)
    assert warnings_of(caplog) == []


def test_an_event_behind_the_poison_has_attempts_of_its_own(site: Any, wait: Wait) -> None:
    store, fails = site.stage.store(), [2, 2, 3, 3]

    def steps(one: Any, events: list[Any]) -> Any:
        yield None
        for event in events:
            if event.sequence_number == 1:
                raise BadEventError
            if fails and fails[0] == event.sequence_number:
                raise BadEventError(fails.pop(0))

    site.publish(5)
    run = site.processor(store, attempts=4, on_poison="skip")
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 4)
    assert Counter(run.deeds.numbers()) == {0: 2, 1: 4, 2: 4, 3: 4, 4: 2}
    assert run.deeds.numbers(ENDED) == [0, 2, 3, 4]


def test_a_batch_without_checkpoints_of_the_processor_is_passed_alone_as_well(
    site: Any, wait: Wait
) -> None:
    store = site.stage.store()

    def steps(one: Any, events: list[Any]) -> Any:
        yield None
        if any(event.sequence_number == 1 for event in events):
            raise BadEventError
        yield one.checkpoints.update_checkpoint(events[-1])

    site.publish(4)
    run = site.processor(store, attempts=2, on_poison="skip", policy=None)
    run.deeds.steps["process_events"] = steps
    run.call("start")
    wait(lambda: site.row(store) == 3)
    assert run.deeds.all("process_events") == [(0, 1, 2, 3), (0,), (1,), (2,), (3,)]


@EVERY_CLIENT
@pytest.mark.parametrize("on_poison", ["skip", "stop"])
def test_an_error_that_cannot_be_shown_is_a_poison_event_as_any_other(
    site: Any, wait: Wait, caplog: Any, capfd: Any, on_poison: str
) -> None:
    caplog.set_level(logging.WARNING)
    store = site.stage.store()
    site.publish(4)
    run = site.processor(store, attempts=2, on_poison=on_poison, on_error=None)
    run.deeds.steps["process_events"] = poison(2, error=UnspeakableError)
    run.call("start")
    if on_poison == "skip":
        wait(lambda: site.row(store) == 3)
    else:
        wait(lambda: site.row(store) == 1 and run.processor.stopped)
        shown = f"UnspeakableError: {SHOWN}"
        wait(lambda: f"{run.processor.stopped['0']}: {shown}" in caplog.text)
    run.call("stop")
    assert "Logging error" not in capfd.readouterr().err
