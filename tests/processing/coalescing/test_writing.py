"""A checkpoint per event comes in, and few are written."""

from collections.abc import Callable
from typing import Any

import pytest

from eventhub_checkpoints import (
    ConfigurationError,
    InvalidRecordError,
    Position,
    SequenceOffset,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
    every,
    trailing,
)
from eventhub_checkpoints.processing.policy import Due, Policy, SaveSchedule
from waiting import eventually


def test_many_checkpoints_are_few_writes_and_the_last_is_stored(make, wait) -> None:
    kept = make(every(events=100))
    for number in range(1000):
        kept.save("0", number)
    wait(lambda: kept.below.writes)
    kept.close()
    assert kept.below.stored() == 999
    assert len(kept.below.writes) <= 11


def test_time_alone_makes_a_checkpoint_due(make_aio) -> None:
    kept = make_aio(every(seconds=60))
    kept.save("0", 7)
    kept.loop.elapse(59.9)
    assert kept.below.writes == []
    kept.loop.elapse(0.1)
    assert kept.below.stored() == 7


def test_time_alone_makes_a_checkpoint_due_in_a_thread(make_sync) -> None:
    kept = make_sync(every(seconds=0.05))
    kept.save("0", 7)
    eventually(lambda: kept.below.stored() == 7)


def test_each_checkpoint_is_due_where_the_policy_says_so(make, wait) -> None:
    kept = make(every(events=1))
    for number in range(3):
        kept.save("0", number)
        wait(lambda number=number: kept.below.stored() == number)


class Asked(Policy):
    """Saves each checkpoint; something happens once while it finds that nothing is due."""

    meanwhile: Callable[[], object] | None = None

    def begin(self, now: float) -> SaveSchedule:
        return AskedSchedule(self, now)


class AskedSchedule(SaveSchedule):
    def __init__(self, policy: Asked, now: float) -> None:
        self.policy, self.every = policy, every(events=1).begin(now)
        self.wake_count, self.wake_time = self.every.wake_count, self.every.wake_time

    def look(self, count: int, position: Position | None, now: float) -> Due | None:
        due = self.every.look(count, position, now)
        if due is None and (meanwhile := self.policy.meanwhile):
            self.policy.meanwhile = None
            meanwhile()
        self.wake_count, self.wake_time = self.every.wake_count, self.every.wake_time
        return due

    def saved(self, count: int, now: float) -> None:
        self.every.saved(count, now)


def test_a_checkpoint_that_comes_while_the_policy_is_asked_is_written(make_sync) -> None:
    policy = Asked()
    kept = make_sync(policy)
    policy.meanwhile = lambda: kept.save("0", 8)
    kept.save("0", 7)
    eventually(lambda: kept.below.stored() == 8)
    assert policy.meanwhile is None


def test_a_replay_window_is_kept_and_written_by_a_flush(make, wait) -> None:
    kept = make(trailing(events=10, seconds=60))
    for number in range(100):
        kept.save("0", number)
    wait(lambda: (kept.below.stored() or 0) >= 89)
    assert kept.flush()
    assert kept.below.stored() == 99


def test_names_are_one_partitions_however_they_are_spelled(kept) -> None:
    for number, name in enumerate(["orders", "Orders", "ORDERS"]):
        row = kept.checkpoint("0", number, "1")
        kept.update_checkpoint(row | {"eventhub_name": name, "consumer_group": "$DEFAULT"})
    kept.flush()
    assert kept.below.writes == [("write", "0", 2)]
    assert list(kept.store.stats()) == ["0"]


UNUSABLE = [
    ("fully_qualified_namespace", ""),
    ("eventhub_name", "a/b"),
    ("consumer_group", "a\nb"),
    ("consumer_group", ["$Default"]),
    ("partition_id", None),
    ("partition_id", 0),
    ("sequence_number", None),
    ("sequence_number", "seven"),
    ("sequence_number", True),
    ("sequence_number", 2**63),
    ("sequence_number", -(2**63) - 1),
    ("offset", 1.5),
    ("offset", 5),
    ("offset", "a\nb"),
]


@pytest.mark.parametrize("kwargs", [{}, {"force": True}])
@pytest.mark.parametrize("is_known", [False, True])
def test_what_cannot_be_stored_is_refused_at_once_and_by_its_name(kept, is_known, kwargs) -> None:
    """Whether it is written later or at once, and the partition is known already or not."""
    if is_known:
        kept.save("0", 1)
    for name, value in UNUSABLE:
        with pytest.raises(InvalidRecordError) as failure:
            kept.update_checkpoint(kept.checkpoint("0", 2, "5") | {name: value}, **kwargs)
        assert (failure.value.field, failure.value.value) == (name, value)
    kept.flush()
    assert kept.below.writes == [("write", "0", 1)] * is_known
    assert len(kept.store.stats()) == is_known


@pytest.mark.parametrize("record", [None, [], "text", 5])
def test_what_is_no_dict_is_refused_at_once(kept, record) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        kept.update_checkpoint(record)
    assert failure.value.field == "record"


@pytest.mark.parametrize("name", ["partition_id", "sequence_number", "consumer_group"])
def test_a_field_that_is_missing_is_named(kept, name) -> None:
    row = kept.checkpoint("0", 2, "5")
    del row[name]
    with pytest.raises(InvalidRecordError) as failure:
        kept.update_checkpoint(row)
    assert failure.value.field == name


@pytest.mark.parametrize("offset", [None, "", SequenceOffset(7)])
def test_an_offset_that_is_unknown_is_written_as_such(kept, offset) -> None:
    for number in (1, 2):
        kept.update_checkpoint(kept.checkpoint("0", number, offset))
    assert kept.saved("0")["offset"] == 2


def test_a_sequence_number_may_be_text(kept) -> None:
    kept.update_checkpoint(kept.checkpoint("0", 2, "5") | {"sequence_number": "41"})
    assert kept.position("0") == 41


def test_what_the_caller_has_saved_is_neither_kept_nor_edited(kept) -> None:
    row = kept.checkpoint("0", 7, "700")
    before = dict(row)
    for kwargs in ({}, {"timeout": 5}):
        kept.update_checkpoint(row, **kwargs)
        assert row == before
    kept.update_checkpoint(row)
    row.update(sequence_number=8, partition_id="1")
    kept.flush()
    assert kept.below.writes == [("write", "0", 7)] * 2
    assert kept.below.given == [{"timeout": 5}, {}]


def test_stats_tell_what_is_unsaved(kept, wait) -> None:
    assert kept.store.stats() == {}
    for number in range(3):
        kept.save("0", number)
    stats = kept.stats()
    assert (stats.saved, stats.refused, stats.failed, stats.pending) == (0, 0, 0, 0)
    assert (stats.lag_events, stats.position, stats.saved_position) == (
        3,
        Position(2, "1002"),
        None,
    )
    wait(lambda: kept.stats().lag_seconds > 0)
    kept.flush()
    stats = kept.stats()
    assert (stats.saved, stats.lag_events, stats.lag_seconds) == (1, 0, 0.0)
    assert stats.saved_position == stats.position == Position(2, "1002")


def test_it_is_unhealthy_while_writes_have_failed_for_long(make, wait) -> None:
    kept = make(every(events=1), unhealthy_after=0.1)
    assert kept.store.healthy()
    kept.below.error = StoreUnavailableError("no answer")
    kept.save("0", 7)
    wait(lambda: not kept.store.healthy())
    kept.below.error = None
    wait(lambda: kept.store.healthy())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", None),
        ("policy", 5),
        ("write_timeout", 0),
        ("write_timeout", "10"),
        ("unhealthy_after", -1),
        ("on_error", "log"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(make, name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is "):
        make(**{name: value})


@pytest.mark.parametrize("error", [StoreNotReadyError("no table"), StoreError("it is closed")])
def test_a_write_that_fails_for_good_is_not_waited_for(make, error) -> None:
    kept = make(write_timeout=30)
    kept.below.error = error
    kept.save("0", 7)
    assert not kept.flush()
    kept.close()
    assert kept.below.writes == [("write", "0", 7)] * 2, "once by each call"
    assert ("0", error) in kept.errors
    kept.below.error = None
    assert kept.flush()
    assert kept.below.stored() == 7


@pytest.mark.parametrize("proposals", [None, 5, {"partition_id": "0"}, "rows"])
def test_proposals_that_are_no_list_are_refused(kept, proposals) -> None:
    with pytest.raises(InvalidRecordError, match=r"ownership_list is .* expected a list of dicts"):
        kept.call("claim_ownership", proposals)


def test_a_keyword_that_is_almost_one_of_the_store_is_refused(kept) -> None:
    with pytest.raises(ConfigurationError, match=r"^forced is not .*; did you mean force\?$"):
        kept.update_checkpoint(kept.checkpoint("0", 1, "5"), forced=True)
