"""Checkpoints as the base class writes them: they go forward, and end in time."""

import logging
import random
from dataclasses import replace
from typing import Any

import pytest

from eventhub_checkpoints import (
    ConfigurationError,
    InvalidRecordError,
    MemoryCheckpointStore,
    StaleCheckpointError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores.hook_results import FORCE, Conflict
from waiting import LIMIT

NO_ANSWER = StoreUnavailableError("no answer")


def row(number: object, partition_id: str = "0") -> dict[str, Any]:
    return {
        "fully_qualified_namespace": "localhost:5672",
        "eventhub_name": "orders",
        "consumer_group": "$Default",
        "partition_id": partition_id,
        "offset": "100",
        "sequence_number": number,
    }


def test_a_checkpoint_costs_one_request_first_and_again(store) -> None:
    for number in range(3):
        store.update(number)
    assert store.faults.calls == ["open", *["write_checkpoint"] * 3]
    assert store.stored() == 2


@pytest.mark.parametrize("force", ["false", "no", 0, 1, None])
def test_a_force_that_is_not_a_bool_is_refused_without_a_request(store, force) -> None:
    with pytest.raises(ConfigurationError, match=r"^force is .*; expected True or False"):
        store.update(5, force=force)
    assert store.faults.calls == []


def test_a_namespace_with_a_port_is_legal(store) -> None:
    store.run("update_checkpoint", row(7))
    (saved,) = store.run("list_checkpoints", "localhost:5672", "orders", "$Default")
    assert saved == row(7)


def test_what_nobody_else_wrote_may_go_down(store) -> None:
    store.update(100)
    store.update(0)
    assert store.stored() == 0


def test_a_checkpoint_below_another_writers_is_refused(store) -> None:
    store.update(1)
    store.official_write(100)
    with pytest.raises(StaleCheckpointError) as failure:
        store.update(50)
    stale = failure.value
    assert (stale.partition_id, stale.sequence_number, stale.newest) == ("0", 50, 100)
    assert store.stored() == 100


def test_the_next_one_below_is_refused_without_a_request(store) -> None:
    store.update(1)
    store.official_write(100)
    for _ in range(2):
        with pytest.raises(StaleCheckpointError):
            store.update(50)
    assert store.faults.count("write_checkpoint") == 2


def test_an_equal_one_is_success(store) -> None:
    store.update(1)
    store.official_write(100)
    store.update(100)
    assert store.faults.count("write_checkpoint") == 3


def test_a_refused_one_is_logged_and_counted_where_nothing_is_raised(make, caplog) -> None:
    store = make()
    store.update(1)
    store.official_write(100)
    store.update(50)
    assert "checkpoint 50 of partition '0' was not stored" in caplog.text
    assert store.store.counters["stale_checkpoints"] == 1
    assert store.stored() == 100


@pytest.mark.parametrize("made_with", ["log", "raise"])
@pytest.mark.parametrize("asked_for", ["log", "raise", None])
def test_one_write_may_say_what_becomes_of_it_when_it_is_stale(
    make, caplog, made_with, asked_for
) -> None:
    store = make(on_stale=made_with)
    store.update(1)
    store.official_write(100)
    if (asked_for or made_with) == "raise":
        with pytest.raises(StaleCheckpointError):
            store.update(50, on_stale=asked_for)
    else:
        store.update(50, on_stale=asked_for)
    assert "checkpoint 50 of partition '0' was not stored" in caplog.text
    assert store.store.counters["stale_checkpoints"] == 1
    assert store.stored() == 100
    store.update(100, on_stale=asked_for)
    assert store.store.settings.on_stale == made_with


def test_a_rewind_on_purpose_is_never_stale(store) -> None:
    store.update(1)
    store.official_write(100)
    store.update(50, force=True, on_stale="raise")
    assert store.stored() == 50


def test_every_store_on_the_base_class_says_that_it_goes_forward_only(store) -> None:
    assert store.store.forward_only is True
    assert type(store.store).forward_only is True


def test_a_rewind_on_purpose_is_written_and_is_the_new_start(store) -> None:
    store.update(1)
    store.official_write(100)
    with pytest.raises(StaleCheckpointError):
        store.update(50)
    store.update(50, force=True)
    store.update(51)
    assert store.stored() == 51


class Racing(MemoryCheckpointStore):
    """Others write between its two requests, as to a backend that cannot write over in one."""

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        self.asked = [*getattr(self, "asked", []), seen]
        if len(self.asked) < 3:
            return Conflict(replace(checkpoint, sequence_number=9, version="another's"))
        return super().write_checkpoint(checkpoint, seen)


def test_a_rewind_on_purpose_stays_one_while_others_write() -> None:
    store = Racing()
    store.update_checkpoint(row(5), force=True)
    assert store.asked == [FORCE] * 3


def test_a_new_owner_stands_where_the_list_after_its_claim_has_shown(make) -> None:
    first, second = make(on_stale="raise"), make(on_stale="raise")
    first.update(100)
    second.take()
    second.list_checkpoints()
    second.update(3)  # the hub was created anew
    assert second.stored() == 3
    with pytest.raises(StaleCheckpointError):
        first.update(2)


def test_keyword_arguments_of_the_client_are_ignored(store) -> None:
    store.update(1, invented_by_a_caller=True)
    assert store.stored() == 1


def test_a_write_that_was_dropped_is_tried_again(store, make_fault) -> None:
    store.faults.plan("write_checkpoint", make_fault(error=NO_ANSWER), times=2)
    store.update(7)
    assert store.stored() == 7


def test_a_write_whose_answer_was_lost_is_recognised(store, make_fault) -> None:
    store.update(1)
    store.faults.plan("write_checkpoint", make_fault(error=ConnectionError(), carried_out=True))
    store.update(7)
    store.update(3)  # its own row of 7 is no other writer's
    assert store.stored() == 3
    assert store.faults.count("write_checkpoint") == 4


def test_a_write_that_failed_for_good_is_recognised_by_a_later_list(make, make_fault) -> None:
    store = make(on_stale="raise")
    store.take()
    store.list_checkpoints()
    store.faults.always["write_checkpoint"] = make_fault(error=NO_ANSWER, carried_out=True)
    store.limit(write_timeout=0.2)
    with pytest.raises(StoreUnavailableError):
        store.update(7)
    store.limit(write_timeout=LIMIT)
    store.faults.always.clear()
    store.list_checkpoints()
    store.update(3)
    assert store.stored() == 3


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no right"), StoreAccessError),
        (StoreNotReadyError("no container"), StoreNotReadyError),
        (ValueError("a driver's own"), StoreError),
    ],
)
def test_an_error_that_trying_again_cannot_cure_is_raised_at_once(
    store, make_fault, error, kind
) -> None:
    store.faults.plan("write_checkpoint", make_fault(error=error))
    with pytest.raises(kind):
        store.update(1)
    assert store.faults.count("write_checkpoint") == 1
    store.update(2)
    assert store.stored() == 2


def test_a_hung_write_is_tried_again_and_cut_off_in_time(timed, make_fault) -> None:
    store = timed(write_timeout=2.0)
    store.faults.plan("write_checkpoint", make_fault(hangs=True))
    store.update(1)
    store.faults.always["write_checkpoint"] = make_fault(hangs=True)
    with store.takes(2.0), pytest.raises(StoreUnavailableError):
        store.update(2)


def test_the_error_of_an_attempt_that_the_deadline_cut_off_hides_no_other(
    timed, make_fault, monkeypatch
) -> None:
    store = timed(operation_timeout=1.0)
    monkeypatch.setattr(random, "random", lambda: 1.0)  # pauses of 0.1, 0.2 and 0.4 s
    refused = make_fault(error=StoreUnavailableError("the connection was refused"))
    store.faults.plan("read_checkpoints", refused, times=3)
    store.faults.always["read_checkpoints"] = make_fault(hangs=True)
    with store.takes(1.0), pytest.raises(StoreUnavailableError, match="was refused"):
        store.list_checkpoints()


def test_writes_of_one_partition_go_one_after_another(store, make_fault, gate) -> None:
    fault = store.faults.plan("write_checkpoint", make_fault(gate=gate))
    first = store.begin_update(5)
    store.until(fault.entered)
    second = store.begin_update(6)
    store.update(1, partition_id="1")  # another partition does not wait
    assert store.faults.most == 2
    gate.set()
    store.ended(first)
    store.ended(second)
    assert store.stored() == 6


def test_a_write_that_waits_too_long_for_another_is_told_so(timed, make_fault, gate) -> None:
    store = timed(write_timeout=LIMIT)
    slow = store.faults.always["write_checkpoint"] = make_fault(gate=gate)
    first = store.begin_update(5)
    try:
        store.until(slow.entered)
        store.limit(write_timeout=0.4)
        with (
            store.takes(0.4),
            pytest.raises(StoreUnavailableError, match="still being written"),
        ):
            store.update(6)
    finally:
        gate.set()
        store.ended(first)


def test_too_many_writers_are_a_retryable_error(make, make_fault) -> None:
    store = make(on_stale="raise")
    store.update(0)
    number = 0

    def somebody_writes(checkpoint: Any, seen: Any) -> None:
        nonlocal number
        number += 1
        store.official_write(number)

    store.faults.before_write = somebody_writes
    with pytest.raises(StoreUnavailableError, match="changed 4 times"):
        store.update(100)
    assert store.faults.count("write_checkpoint") == 1 + 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fully_qualified_namespace", ""),
        ("eventhub_name", "a/b"),
        ("consumer_group", "a\nb"),
        ("partition_id", None),
        ("sequence_number", None),
        ("sequence_number", "seven"),
        ("sequence_number", 2**63),
        ("offset", 1.5),
    ],
)
def test_an_unusable_checkpoint_is_refused_without_a_request(store, name, value) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        store.run("update_checkpoint", row(1) | {name: value})
    assert (failure.value.field, failure.value.value) == (name, value)
    assert store.faults.calls == []


@pytest.mark.parametrize("method", ["list_ownership", "list_checkpoints"])
def test_an_unusable_scope_is_refused_without_a_request(store, method) -> None:
    with pytest.raises(InvalidRecordError):
        store.run(method, "ns", "", "$Default")
    assert store.faults.calls == []


def test_what_the_caller_saved_is_neither_kept_nor_edited(store) -> None:
    mine = row(7)
    store.run("update_checkpoint", mine)
    assert mine == row(7)
    mine["sequence_number"] = 8
    (saved,) = store.run("list_checkpoints", "localhost:5672", "orders", "$Default")
    assert saved["sequence_number"] == 7
    saved["sequence_number"] = 9
    (again,) = store.run("list_checkpoints", "localhost:5672", "orders", "$Default")
    assert again["sequence_number"] == 7


def test_a_row_that_cannot_be_read_is_skipped_and_reported_once(store, caplog) -> None:
    scope = store.scope
    store.update(1, partition_id="1")
    store.rows.put_raw("checkpoint", scope, "0", {"hdi_isfolder": "true"})
    with caplog.at_level(logging.DEBUG, "eventhub_checkpoints"):
        for _ in range(3):
            assert [one["partition_id"] for one in store.list_checkpoints()] == ["1"]
    levels = [record.levelname for record in caplog.records if record.message.startswith("'0' in")]
    assert levels == ["WARNING", "DEBUG", "DEBUG"]
    assert store.store.counters["skipped_rows"] == 3


def test_a_forced_checkpoint_costs_one_look_at_the_owner_and_a_plain_one_none(store) -> None:
    store.update(100)
    store.update(10, force=True)
    store.update(11)
    assert store.faults.calls == [
        *["open", "write_checkpoint"],
        *["write_checkpoint", "read_ownerships"],
        "write_checkpoint",
    ]


@pytest.mark.parametrize("error", [NO_ANSWER, StoreAccessError("no right to list"), KeyError("?")])
def test_a_forced_checkpoint_is_stored_whatever_the_look_at_the_owner_meets(
    store, make_fault, caplog, error
) -> None:
    store.faults.always["read_ownerships"] = make_fault(error=error)
    store.update(10, force=True)
    assert store.stored() == 10
    assert caplog.text == ""


def test_a_look_at_the_owner_that_hangs_ends_with_the_time_of_the_write(timed, make_fault) -> None:
    store = timed(write_timeout=2.0)
    store.faults.always["read_ownerships"] = make_fault(hangs=True)
    with store.takes(1.0):  # one attempt, which has half of the time
        store.update(10, force=True)
    assert store.stored() == 10


@pytest.mark.parametrize(("age", "warns"), [(59, True), (60, False)])
def test_an_owner_that_has_not_renewed_for_a_minute_is_not_live(
    make_aio, caplog, age: float, warns: bool
) -> None:
    another, store = make_aio(), make_aio()
    another.take("0", "another")
    store.let_pass(age)
    store.update(10, force=True)
    assert ("while 'another' owns the partition" in caplog.text) == warns


def test_a_checkpoint_of_a_stranger_that_is_passed_from_below_is_no_rewind(store, caplog) -> None:
    store.update(100)
    store.official_write(105)
    store.update(110)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("given", "meant"), [("forced", "force"), ("Force", "force"), ("onstale", "on_stale")]
)
def test_a_keyword_that_is_almost_ours_is_refused(store, given, meant) -> None:
    store.update(7)
    with pytest.raises(ConfigurationError, match=rf"^{given} is .*; did you mean {meant}\?$"):
        store.update(5, **{given: True})
    assert store.stored() == 7


def test_a_keyword_of_another_store_is_ignored(store) -> None:
    store.update(7, timeout=5, overwrite=True)
    assert store.stored() == 7
