"""A partition's checkpoint is written before its release, and at once when it is lost."""

import threading
from typing import Any

import pytest

from eventhub_checkpoints import StoreUnavailableError, every
from variants import LONG_SYNC, SIMULATED


def other_owner(kept: Any) -> Any:
    """The store object of another client, over the same rows and without a wrapper."""
    return kept.store.store.inner


def take_over(kept: Any, partition_id: str) -> None:
    row = kept.row(partition_id)
    other = [row | {"owner_id": "other"}]
    assert len(kept.loop.finished(other_owner(kept).claim_ownership(other))) == 1


@pytest.mark.parametrize("forward_only", [True, False])
def test_what_is_kept_is_written_before_the_release(make, forward_only) -> None:
    kept = make(forward_only=forward_only)
    won = kept.take("0", "me")
    kept.below.calls.clear()
    kept.save("0", 7)
    kept.save("1", 8)
    assert len(kept.release(won)) == 1
    assert kept.below.calls == [("write", "0", 7), ("release", "0")]


def test_several_are_written_before_any_is_released(kept) -> None:
    everything = [str(number) for number in range(40)]
    won = kept.claim_ownership([kept.proposal(one, "me") for one in everything])
    for partition_id in everything:
        kept.save(partition_id, 7)
    kept.below.calls.clear()
    kept.claim_ownership([row | {"owner_id": ""} for row in won])
    kinds = [call[0] for call in kept.below.calls]
    assert kinds == ["write"] * 40 + ["release"] * 40


def test_a_release_is_made_and_calm_where_the_write_fails(make, wait, caplog) -> None:
    kept = make(every(events=1), write_timeout=0.2)
    won = kept.take("0", "me")
    kept.below.error = StoreUnavailableError("no answer")
    kept.save("0", 7)
    assert len(kept.release(won)) == 1
    assert kept.owner("0") == ""
    assert "partition 0 was left before its last 1 checkpoints were written" in caplog.text
    kept.below.error = None
    assert kept.store.stats() == {}
    assert kept.flush()
    assert kept.below.stored() is None


def test_a_release_waits_for_a_write_under_way(make) -> None:
    kept = make(every(events=1))
    won = kept.take("0", "me")
    kept.below.gate.clear()
    kept.save("0", 7)
    kept.entered()
    kept.below.gate.set()
    kept.release(won)
    assert kept.below.calls[-2:] == [("write", "0", 7), ("release", "0")]


@pytest.mark.parametrize("variant", [SIMULATED, LONG_SYNC], indirect=True)
def test_releases_one_after_another_share_the_time_of_a_store_that_hangs(make) -> None:
    kept = make(every(events=10**6), write_timeout=1)
    won = kept.claim_ownership([kept.proposal(str(number), "me") for number in range(8)])
    for row in won:
        kept.save(row["partition_id"], 7)
    kept.below.gate.clear()
    took = kept.seconds(lambda: [kept.release(row) for row in won])
    if kept.is_aio:
        assert took == 2.0, "the first takes a second, and all others together another one"
    else:
        assert took < 6, "one for each, 8 s"
    assert [call[0] for call in kept.below.calls].count("release") == 8
    kept.below.gate.set()


def test_what_is_kept_is_written_where_no_thread_can_be_started(make_sync, monkeypatch) -> None:
    kept = make_sync()
    won = kept.take("0", "me")
    kept.save("0", 7)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert len(kept.release(won)) == 1
    assert kept.below.calls[-2:] == [("write", "0", 7), ("release", "0")]
    assert kept.errors == []


def test_what_no_store_could_release_is_left_to_the_one_below(kept, caplog) -> None:
    rows = [{"owner_id": ""}, kept.proposal("a/b", ""), kept.proposal("1", "me")]
    won = kept.claim_ownership(rows)
    assert [row["partition_id"] for row in won] == ["1"]
    assert "a release was left out" in caplog.text


def test_a_claim_may_come_from_a_generator_and_gives_a_list(kept) -> None:
    rows = kept.claim_ownership(kept.proposal(one, "me") for one in "01")
    assert isinstance(rows, list)
    assert [row["partition_id"] for row in rows] == ["0", "1"]


def test_arguments_of_lists_and_claims_reach_the_store_below(kept, monkeypatch) -> None:
    given = []

    def note(*args: Any, **kwargs: Any) -> Any:
        given.append(kwargs)
        return noted() if kept.is_aio else []

    async def noted() -> list[Any]:
        return []

    for name in ("list_ownership", "claim_ownership", "list_checkpoints"):
        monkeypatch.setattr(kept.store.store, name, note)
    kept.list_ownership(timeout=1)
    kept.claim_ownership([], timeout=2)
    kept.list_checkpoints(timeout=3)
    kept.list_checkpoints()
    assert given == [{"timeout": 1}, {"timeout": 2}, {"timeout": 3}, {}]


WAYS_TO_LOSE = ["the claim is lost", "it is not proposed", "a list shows it"]


def lose(kept: Any, how: str) -> None:
    """Keep checkpoint 7 of partition 0 and 8 of 1, and lose partition 0 to another client."""
    won = kept.claim_ownership([kept.proposal(one, "me") for one in "01"])
    kept.save("0", 7)
    kept.save("1", 8)
    take_over(kept, "0")
    if how == "the claim is lost":
        assert len(kept.claim_ownership(won)) == 1
    elif how == "it is not proposed":
        assert len(kept.claim_ownership(won[1:])) == 1
    else:
        kept.list_ownership()


@pytest.mark.parametrize("how", WAYS_TO_LOSE)
def test_what_is_kept_of_a_lost_partition_is_written_at_once(kept, wait, how) -> None:
    lose(kept, how)
    wait(lambda: kept.below.stored() == 7)
    kept.save("0", 9)
    wait(lambda: kept.below.stored() == 9)
    kept.take("0", "me", kept.row("0")["etag"])
    kept.save("0", 10)
    kept.save("0", 11)
    assert kept.flush()
    assert [number for _, id_, number in kept.below.writes if id_ == "0"] == [7, 9, 11]


def test_what_is_kept_of_a_lost_partition_does_not_overwrite_its_next_owner(kept, wait) -> None:
    won = kept.take("0", "me")
    kept.list_checkpoints()
    kept.save("0", 7)
    take_over(kept, "0")
    kept.below.official_write(20)
    assert kept.claim("0", "me", won["etag"]) is None
    wait(lambda: kept.stats().refused == 1)
    assert kept.below.stored() == 20


def test_a_store_that_hangs_delays_no_client_that_has_lost_a_partition(kept, wait) -> None:
    kept.below.gate.clear()
    lose(kept, "a list shows it")
    kept.entered()
    kept.save("0", 9)
    kept.below.gate.set()
    wait(lambda: kept.below.stored() == 9)


@pytest.mark.parametrize("how", WAYS_TO_LOSE)
def test_a_store_that_may_go_back_is_told_nothing_of_a_lost_partition(make, how) -> None:
    kept = make(forward_only=False)
    lose(kept, how)
    kept.save("0", 9)
    assert kept.flush()
    assert kept.below.writes == [("write", "1", 8)]
    kept.take("0", "me", kept.row("0")["etag"])
    kept.save("0", 10)
    assert kept.stats("0").refused == 1
    assert kept.flush()
    assert kept.below.writes == [("write", "1", 8), ("write", "0", 10)]


def test_a_store_that_may_go_back_is_told_nothing_after_the_release(make) -> None:
    kept = make(forward_only=False)
    kept.release(kept.take("0", "me"))
    kept.save("0", 7)
    assert kept.flush()
    assert kept.below.writes == []
    kept.save("0", 8, force=True)
    assert kept.below.writes == [("write", "0", 8)]


def test_what_nobody_claimed_is_not_lost_by_the_claims_of_others(make) -> None:
    kept = make(forward_only=False)
    kept.save("0", 7)
    kept.save("1", 8)
    kept.take("1", "me")
    kept.list_ownership()
    other_group = kept.scope._replace(consumer_group="other")
    won = kept.within(other_group).take("1", "me")
    kept.within(other_group).release(won)
    kept.flush()
    assert sorted(kept.below.writes) == [("write", "0", 7), ("write", "1", 8)]


def test_a_store_that_goes_forward_is_told_of_a_lost_partition_and_refuses(kept) -> None:
    won = kept.take("0", "me")
    kept.list_checkpoints()
    kept.save("0", 7)
    take_over(kept, "0")
    other = other_owner(kept)
    assert kept.claim("0", "me", won["etag"]) is None
    assert kept.flush()  # nobody is further
    assert kept.below.stored() == 7
    kept.below.official_write(20)
    kept.save("0", 9)
    assert kept.flush()
    assert kept.stats().refused == 1
    assert kept.below.stored() == 20
    assert other is not kept.store


def test_a_claim_that_raises_loses_nothing(make, monkeypatch) -> None:
    kept = make(forward_only=False)
    won = kept.take("0", "me")
    kept.save("0", 7)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(kept.store.store, "claim_ownership", fail)
    with pytest.raises(StoreUnavailableError):
        kept.claim("0", "me", won["etag"])
    kept.flush()
    assert kept.below.writes == [("write", "0", 7)]
