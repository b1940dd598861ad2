"""Stores that fail or hang, and policies that raise: no handler sees it, and nothing is lost."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from eventhub_checkpoints import CheckpointStoreError, Policy, every
from eventhub_checkpoints.processing._async import session as aio_session
from eventhub_checkpoints.processing._sync import session
from eventhub_checkpoints.processing.policy import Due, SaveSchedule
from waiting import LIMIT

Wait = Callable[..., Any]
AWAY = ConnectionError("the storage is away")


def test_a_store_that_is_away_for_a_while_is_not_seen_by_handlers(stage: Any, wait: Wait) -> None:
    store, seen = stage.store(), []
    checkpointer = stage.checkpointer(
        store, every(events=1), on_error=lambda *said: seen.append(said), unhealthy_after=2
    )
    store.error = AWAY
    stage.publish(5)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 5))
    assert checkpointer.healthy()
    wait(lambda: not checkpointer.healthy())
    assert (consumer.errors, consumer.closed) == ([], [])
    stage.publish(5)
    wait(lambda: consumer.has("0", 10))
    wait(lambda: checkpointer.stats()["0"].failed >= 2)
    assert checkpointer.stats()["0"].lag_events == 10
    assert seen[0] == ("0", AWAY)
    store.error = None
    wait(lambda: store.saved["0"] == [9])
    wait(checkpointer.healthy)
    assert checkpointer.stats()["0"].lag_events == 0


def test_a_write_that_hangs_is_said_and_ends_without_another_beside_it(
    stage: Any, wait: Wait
) -> None:
    store, seen = stage.store(), []
    checkpointer = stage.checkpointer(
        store,
        every(events=1),
        write_timeout=0.3,
        unhealthy_after=0.6,
        on_error=lambda *said: seen.append(said),
    )
    store.is_open.clear()
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3))
    wait(lambda: seen)
    assert isinstance(seen[0][1], TimeoutError)
    assert str(seen[0][1]).startswith("no answer within 0.")
    wait(lambda: not checkpointer.healthy())
    assert checkpointer.stats()["0"].failed >= 1
    store.is_open.set()
    wait(lambda: store.saved["0"][-1:] == [2])
    wait(checkpointer.healthy)
    assert store.saved["0"] == sorted(store.saved["0"])


def test_a_store_that_hangs_does_not_hold_the_client_that_stops(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.foreign_store()
    checkpointer = stage.checkpointer(store, every(events=1), write_timeout=0.5)
    store.is_open.clear()
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3) and store.begun)
    stage.close(consumer)
    stage.check_seconds(consumer.seconds["0"], 0.5)
    stage.finished(checkpointer.close())
    assert consumer.closed == [("0", "SHUTDOWN")]
    assert ("release", "0") in store.log
    assert "partition 0: the last position could not be saved" in caplog.text
    store.is_open.set()


def test_what_could_not_be_saved_at_the_end_is_tried_for_as_long_as_a_write_may_take(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1000), write_timeout=20)
    store.error = AWAY
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3))
    closing = stage.begin_close(consumer)
    wait(lambda: store.begun >= 2)
    store.error = None
    closing.result(LIMIT)
    assert store.saved["0"] == [2]


@pytest.mark.parametrize("limit", ["max_pending", "max_unsaved"])
def test_no_more_events_are_begun_than_may_be_unfinished_or_unsaved(
    stage: Any, wait: Wait, elapse: Wait, limit: str
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1), **{limit: 4})
    stage.publish(12)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 4))
    tracked_events = consumer.tracked["0"]
    for number in range(8):
        elapse(0.05)
        assert not consumer.has("0", 5 + number)
        tracked_events[number].done()
        wait(lambda number=number: consumer.has("0", 5 + number))
    for number in range(8, 12):
        tracked_events[number].done()
    wait(lambda: store.saved["0"][-1:] == [11])


def test_never_more_than_max_unsaved_events_are_unsaved_while_the_store_is_away(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(seconds=600), max_unsaved=10)
    store.error = AWAY
    stage.publish(100)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: store.begun >= 3)
    assert len(consumer.arrived["0"]) == 10
    assert checkpointer.stats()["0"].lag_events == 10
    store.error = None
    wait(lambda: consumer.has("0", 100))
    saved = [-1, *store.saved["0"]]
    assert max(after - before for before, after in pairwise(saved)) <= 10


def test_who_waits_for_room_says_so(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (session, aio_session):
        monkeypatch.setattr(module, "PATIENCE", 0.1)
    store = stage.store()
    checkpointer = stage.checkpointer(store, max_pending=2)
    stage.publish(3)
    consumer = stage.start(store, checkpointer)
    wait(lambda: "partition 0: no further event is begun while 2 are unfinished" in caplog.text)
    for number in range(2):
        consumer.tracked["0"][number].done()
    wait(lambda: consumer.has("0", 3))


def test_where_all_wait_for_an_event_that_was_given_up_the_partition_is_opened_anew(
    stage: Any, wait: Wait
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1), max_pending=3)
    stage.publish(6)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 3))
    consumer.tracked["0"][0].done()
    consumer.tracked["0"][1].failed()
    wait(lambda: consumer.closed)
    assert consumer.closed == [("0", "OWNERSHIP_LOST")]
    assert isinstance(consumer.errors[0][1], CheckpointStoreError)
    wait(lambda: consumer.arrived["0"].count(1) == 2)
    consumer.finishes = True
    for tracked in list(consumer.tracked["0"].values()):
        tracked.done()
    wait(lambda: store.saved["0"][-1:] == [5])


class Broken(SaveSchedule):
    """A policy of a user's that raises."""

    wake_count, wake_time = 1, 0.0

    def __init__(self, policy: "Breaks") -> None:
        self.policy = policy

    def look(self, count: int, position: Any, now: float) -> Due | None:
        if self.policy.is_broken:
            raise ZeroDivisionError("of the policy")
        self.wake_count, self.wake_time = count + 1, now + 0.1
        return Due(count, position) if position and count > self.policy.reached else None

    def saved(self, count: int, now: float) -> None:
        self.policy.reached = count


class Breaks(Policy):
    def __init__(self) -> None:
        self.is_broken, self.reached = True, 0

    def begin(self, now: float) -> SaveSchedule:
        return Broken(self)


def test_a_policy_that_raises_is_said_and_asked_again(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store, policy = stage.store(), Breaks()
    checkpointer = stage.checkpointer(store, policy)
    stage.publish(3)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 3))
    wait(lambda: not checkpointer.healthy())
    assert "the policy of partition 0 raised" in caplog.text
    policy.is_broken = False
    wait(lambda: store.saved["0"] == [2])
    wait(checkpointer.healthy)


def test_an_on_error_that_raises_changes_nothing(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    def on_error(partition_id: str, error: Exception) -> None:
        raise ZeroDivisionError

    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1), on_error=on_error)
    store.error = AWAY
    stage.publish(1)
    stage.start(store, checkpointer, finishes=True)
    wait(lambda: "on_error of partition 0 raised" in caplog.text)
    store.error = None
    wait(lambda: store.saved["0"] == [0])


class ForeignEvent:
    """An event that no session has."""

    sequence_number, offset = 7, "7"


def test_an_event_that_is_not_tracked_is_named(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1))
    stage.publish(1)
    consumer = stage.start(store, checkpointer, finishes=True)
    wait(lambda: consumer.has("0", 1))
    checkpointer.done(ForeignEvent())
    checkpointer.done(ForeignEvent())
    said = [each.getMessage() for each in caplog.records if "done()" in each.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("done() was called with event 7, for which no open ")
    assert "waits (open: 0)" in said[0]


def test_an_event_whose_session_has_ended_is_named_with_its_partition(
    stage: Any, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.store()
    checkpointer = stage.checkpointer(store, every(events=1), drain_timeout=0.1)
    stage.publish(1)
    consumer = stage.start(store, checkpointer)
    wait(lambda: consumer.has("0", 1))
    event = consumer.tracked["0"][0]._event
    stage.close(consumer)
    checkpointer.done(event)
    assert "done() was called with event 0 of partition 0, whose session has ended" in caplog.text
