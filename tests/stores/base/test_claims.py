"""Claims as the base class carries them out: nothing is invented, nothing waits for ever."""

from typing import Any

import pytest

from eventhub_checkpoints import (
    InvalidRecordError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from simulated_time import EPOCH, now
from waiting import LIMIT

NO_ANSWER = StoreUnavailableError("no answer")


def proposal(partition_id: str, owner_id: str = "me", etag: str = "") -> dict[str, Any]:
    return {
        "fully_qualified_namespace": "ns.servicebus.windows.net",
        "eventhub_name": "orders",
        "consumer_group": "$Default",
        "partition_id": partition_id,
        "owner_id": owner_id,
        "etag": etag,
    }


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["partition_id"] for row in rows]


def test_a_claim_costs_one_request(store) -> None:
    store.take()
    assert store.faults.calls == ["open", "try_claim"]


def test_a_lost_claim_is_left_out_counted_and_costs_one_request(make) -> None:
    make().take("0", "other")
    store = make()
    assert store.claim(proposal("0")) == []
    assert store.faults.calls == ["open", "try_claim"]
    assert store.store.counters["lost_claims"] == 1


def test_a_claim_that_was_dropped_is_tried_again(store, make_fault) -> None:
    store.faults.plan("try_claim", make_fault(error=NO_ANSWER), times=2)
    assert store.take()["owner_id"] == "me"
    assert store.faults.calls == ["open", *["try_claim"] * 3]


def test_a_claim_whose_answer_was_lost_is_recognised_with_one_look(store, make_fault) -> None:
    store.faults.plan("try_claim", make_fault(error=ConnectionError(), carried_out=True))
    won = store.take()
    assert store.faults.calls == ["open", "try_claim", "try_claim", "read_ownerships"]
    assert store.take(etag=won["etag"])["owner_id"] == "me"


def test_a_claim_without_an_answer_that_another_won_is_lost(make, make_fault) -> None:
    store, other = make(), make()
    other.take("0", "other")
    store.faults.plan("try_claim", make_fault(error=NO_ANSWER))
    assert store.claim(proposal("0")) == []
    assert store.owner() == "other"


def test_the_same_owner_without_the_own_etag_is_not_recognised(make, make_fault) -> None:
    store, twin = make(), make()
    twin.take("0", "me")
    store.faults.plan("try_claim", make_fault(error=NO_ANSWER))
    assert store.claim(proposal("0", "me")) == []


def test_a_new_claim_of_unknown_outcome_is_left_out(make, make_fault) -> None:
    store = make(operation_timeout=0.3)
    store.faults.always["try_claim"] = make_fault(error=NO_ANSWER, carried_out=True)
    store.faults.always["read_ownerships"] = make_fault(error=NO_ANSWER)
    assert store.claim(proposal("0")) == []
    assert store.store.counters["unconfirmed_claims"] == 1


def test_a_renewal_of_unknown_outcome_is_kept_as_it_was(make, make_fault) -> None:
    store = make(keep_unconfirmed=LIMIT)
    won = store.take()
    store.faults.always["try_claim"] = make_fault(error=NO_ANSWER)
    store.limit(operation_timeout=0.3)
    assert store.claim(won) == [won]


@pytest.mark.parametrize(("seconds", "is_kept"), [(29.9, True), (30.0, False)])
def test_a_renewal_of_unknown_outcome_is_kept_no_longer_than_it_was_told(
    make_aio, make_fault, seconds, is_kept
) -> None:
    store = make_aio(operation_timeout=10.0, keep_unconfirmed=30.0)
    won = store.take()
    store.faults.always["try_claim"] = make_fault(hangs=True)
    store.let_pass(seconds - 10.0)
    with store.takes(10.0):
        assert store.claim(won) == ([won] if is_kept else [])


def test_a_list_that_shows_an_old_row_ends_the_keeping(make, make_fault) -> None:
    store = make(keep_unconfirmed=LIMIT)
    won = store.take()
    store.rows.clock_shift += LIMIT  # the row is now as old as that on the server's clock
    store.list_ownership()
    store.faults.always["try_claim"] = make_fault(error=NO_ANSWER)
    store.limit(operation_timeout=0.3)
    assert store.claim(won) == []


def test_a_renewal_with_an_etag_of_somebody_else_is_not_kept(make, make_fault) -> None:
    store = make()
    theirs = make().take("0", "other")
    store.list_ownership()
    store.faults.always["try_claim"] = make_fault(error=NO_ANSWER)
    store.limit(operation_timeout=0.3)
    assert store.claim(proposal("0", "me", theirs["etag"])) == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no right"), StoreAccessError),
        (StoreAccessError("no right"), StoreAccessError),
        (StoreNotReadyError("no container"), StoreNotReadyError),
        (ValueError("a driver's own"), StoreError),
    ],
)
def test_a_refusal_is_raised_after_all_others_were_tried(store, make_fault, error, kind) -> None:
    store.faults.plan("try_claim", make_fault(error=error))
    with pytest.raises(kind):
        store.claim(*(proposal(str(number)) for number in range(4)))
    assert store.faults.count("try_claim") == 4
    rows = store.list_ownership()
    assert len(rows) == 3, "those of the batch that won have won"
    assert len(store.claim(*(row for row in rows if row["owner_id"] == "me"))) == 3


def test_the_drivers_own_error_is_the_cause(store, make_fault) -> None:
    error = PermissionError("no right")
    store.faults.plan("try_claim", make_fault(error=error))
    with pytest.raises(StoreAccessError) as failure:
        store.claim(proposal("0"))
    assert failure.value.__cause__ is error


@pytest.mark.parametrize(
    ("name", "value"), [("partition_id", ""), ("eventhub_name", "a/b"), ("owner_id", 5)]
)
def test_an_unusable_proposal_is_raised_after_all_others_were_tried(store, name, value) -> None:
    with pytest.raises(InvalidRecordError) as failure:
        store.claim(proposal("1") | {name: value}, proposal("0"))
    assert (failure.value.field, failure.value.value) == (name, value)
    assert store.owner("0") == "me"


def test_won_rows_come_back_in_the_order_proposed(store) -> None:
    assert ids(store.claim(*(proposal(key) for key in ("3", "1", "2")))) == ["3", "1", "2"]


def test_what_the_caller_proposed_is_neither_kept_nor_edited(store) -> None:
    mine = proposal("0")
    (won,) = store.claim(mine)
    assert mine == proposal("0")
    mine["owner_id"] = won["owner_id"] = "edited"
    assert store.list_ownership()[0]["owner_id"] == "me"


def test_a_generator_of_proposals_is_read_once(store) -> None:
    won = store.run("claim_ownership", (proposal(str(number)) for number in range(3)))
    assert ids(won) == ["0", "1", "2"]


def test_an_empty_batch_asks_nothing(store) -> None:
    assert store.claim() == []
    assert store.faults.calls == []


def test_claims_of_a_batch_overlap_and_no_more_than_it_was_told(timed, make_fault) -> None:
    store = timed(max_concurrency=4)
    store.faults.always["try_claim"] = make_fault(seconds=0.5)
    with store.takes(1.5):
        assert len(store.claim(*(proposal(str(number)) for number in range(12)))) == 12
    assert store.faults.most == 4


def test_a_batch_is_no_slower_than_its_slowest_claim(make_aio, make_fault) -> None:
    store = make_aio(max_concurrency=32)
    store.faults.always["try_claim"] = make_fault(seconds=2.0)
    store.faults.plan("try_claim", make_fault(seconds=3.0))
    with store.takes(3.0):
        store.claim(*(proposal(str(number)) for number in range(32)))


def test_one_hung_claim_costs_the_others_nothing(timed, make_fault) -> None:
    store = timed(operation_timeout=2.0)
    store.faults.always["try_claim"] = make_fault(hangs=True)
    store.faults.plan("try_claim", make_fault(), times=3)
    with store.takes(2.0):
        won = store.claim(*(proposal(str(number)) for number in range(4)))
    assert len(won) == 3


@pytest.mark.parametrize("method", ["list_ownership", "list_checkpoints"])
def test_a_list_is_tried_again_and_cut_off_in_time(timed, make_fault, method) -> None:
    store = timed(operation_timeout=2.0)
    hook = {"list_ownership": "read_ownerships", "list_checkpoints": "read_checkpoints"}[method]
    store.faults.plan(hook, make_fault(hangs=True))
    assert getattr(store, method)() == []
    store.faults.always[hook] = make_fault(hangs=True)
    with store.takes(2.0), pytest.raises(StoreUnavailableError):
        getattr(store, method)()


def test_an_ownership_is_as_old_as_on_the_servers_clock(make_aio) -> None:
    store = make_aio()
    store.take()
    store.rows.clock_shift += 1000
    store.let_pass(7)
    (row,) = store.list_ownership()
    assert row["last_modified_time"] == EPOCH + now() - 1007


def test_a_row_from_a_clock_ahead_is_not_from_the_future(make_aio) -> None:
    store = make_aio()
    store.take()
    store.rows.clock_shift -= 1000
    (row,) = store.list_ownership()
    assert row["last_modified_time"] == EPOCH + now()


def test_names_are_given_back_as_the_caller_spells_them(store) -> None:
    store.take()
    rows = store.run("list_ownership", "NS.servicebus.windows.net", "ORDERS", "$default")
    assert [row["eventhub_name"] for row in rows] == ["ORDERS"]


@pytest.mark.parametrize("proposals", [None, 5, {"partition_id": "0"}, "rows"])
def test_proposals_that_are_no_list_are_refused(store, proposals) -> None:
    with pytest.raises(InvalidRecordError, match=r"ownership_list is .* expected a list of dicts"):
        store.run("claim_ownership", proposals)
