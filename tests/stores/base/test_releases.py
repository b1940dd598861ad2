"""A release is calm: it never raises, waits for a write, and undoes no newer claim."""

from typing import Any

import pytest

from eventhub_checkpoints import StoreNotReadyError, StoreUnavailableError

NO_ANSWER = StoreUnavailableError("no answer")


def released(won: dict[str, Any]) -> dict[str, Any]:
    """What the client hands in: the row that it was given, without an owner."""
    return won | {"owner_id": ""}


def test_a_release_leaves_the_row_without_an_owner(store) -> None:
    (row,) = store.claim(released(store.take()))
    assert (row["owner_id"], store.owner()) == ("", "")


def test_a_released_partition_can_be_claimed_by_anybody_with_its_etag(make) -> None:
    first, second = make(), make()
    first.claim(released(first.take()))
    (row,) = second.list_ownership()
    assert second.take(owner_id="other", etag=row["etag"])["owner_id"] == "other"


@pytest.mark.parametrize(
    "error",
    [NO_ANSWER, PermissionError("no right"), StoreNotReadyError("no container"), ValueError("?")],
)
def test_a_release_that_fails_is_logged_and_left_out(make, make_fault, error, caplog) -> None:
    store = make()
    won = store.take()
    store.faults.always["try_claim"] = make_fault(error=error)
    store.limit(operation_timeout=0.3)
    assert store.claim(released(won)) == []
    assert "partition 0 was not released" in caplog.text


@pytest.mark.parametrize(("operation", "write"), [(30.0, 2.0), (2.0, 10.0)])
def test_a_release_that_hangs_is_cut_off(timed, make_fault, operation, write) -> None:
    store = timed(operation_timeout=operation, write_timeout=write)
    won = store.take()
    store.faults.always["try_claim"] = make_fault(hangs=True)
    with store.takes(2.0):
        assert store.claim(released(won)) == []


@pytest.mark.parametrize("name", ["partition_id", "eventhub_name"])
def test_a_release_that_is_unusable_is_logged_and_left_out(store, name, caplog) -> None:
    assert store.claim(released(store.take()) | {name: None}) == []
    assert "a release was left out" in caplog.text


def test_a_release_of_what_another_owns_is_left_out(make) -> None:
    first, second = make(), make()
    won = first.take()
    second.take(owner_id="other", etag=won["etag"])
    assert first.claim(released(won)) == []
    assert first.owner() == "other"


def test_a_release_that_comes_late_uses_the_newest_etag_of_its_claim(store) -> None:
    first = store.take()
    second = store.take(etag=first["etag"])
    store.take(etag=second["etag"])
    store.faults.calls.clear()
    assert len(store.claim(released(first))) == 1
    assert store.owner() == ""
    assert store.faults.calls == ["try_claim", "try_claim"]


def test_a_release_that_comes_late_does_not_undo_a_newer_claim(make) -> None:
    store, other = make(), make()
    first = store.take()
    theirs = other.take(owner_id="other", etag=first["etag"])
    store.list_ownership()
    store.take(etag=theirs["etag"])
    assert store.claim(released(first)) == []
    assert store.owner() == "me"


def test_a_release_that_comes_late_does_not_reach_another_owner_of_the_same_store(store) -> None:
    first = store.take()
    store.take(owner_id="me, restarted", etag=first["etag"])
    assert store.claim(released(first)) == []
    assert store.owner() == "me, restarted"


def test_a_release_never_looks_for_an_own_claim(store, make_fault) -> None:
    won = store.take()
    store.faults.plan("try_claim", make_fault(error=NO_ANSWER, carried_out=True))
    store.claim(released(won))
    assert store.owner() == ""
    assert store.faults.count("read_ownerships") == 0


def test_a_release_waits_for_the_checkpoint_that_is_being_written(timed, make_fault, gate) -> None:
    store = timed()
    won = store.take()
    writing = store.faults.plan("write_checkpoint", make_fault(gate=gate))
    claimed = store.faults.plan("try_claim", make_fault())
    update = store.begin_update(7)
    store.until(writing.entered)
    release = store.begin("claim_ownership", [released(won)])
    store.let_pass(2.0)
    assert not claimed.entered.is_set(), "the release did not wait"
    gate.set()
    store.ended(update)
    assert len(store.ended(release)) == 1
    assert (store.stored(), store.owner()) == (7, "")


def test_a_release_does_not_wait_for_another_partition(store, make_fault, gate) -> None:
    won = store.take()
    writing = store.faults.plan("write_checkpoint", make_fault(gate=gate))
    update = store.begin_update(7, "1")
    store.until(writing.entered)
    assert len(store.claim(released(won))) == 1
    gate.set()
    store.ended(update)


def test_a_batch_may_release_and_claim(store) -> None:
    won = store.take("0")
    rows = store.claim(released(won), won | {"partition_id": "1", "etag": ""})
    assert [(row["partition_id"], row["owner_id"]) for row in rows] == [("0", ""), ("1", "me")]


def test_after_a_release_a_late_write_must_not_pass_the_next_owner(make) -> None:
    first, second = make(on_stale="raise"), make()
    won = first.take()
    first.list_checkpoints()
    first.update(5)
    first.claim(released(won))
    (row,) = second.list_ownership()
    second.take(owner_id="other", etag=row["etag"])
    second.list_checkpoints()
    second.update(9)
    with pytest.raises(Exception, match="another writer has stored 9"):
        first.update(6)
    assert second.stored() == 9
