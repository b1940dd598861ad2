"""What a store knows of its own claim, from the taking to the loss."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints import Ownership, Scope
from eventhub_checkpoints.stores.partition_state import REMEMBERED_ETAGS, Lease

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


def row(etag: str, owner_id: str = "me") -> Ownership:
    return Ownership(SCOPE, "0", owner_id, etag, 1.0)


def held(*etags: str) -> Lease:
    hold = Lease()
    for previous, etag in zip((None, *etags), etags, strict=False):
        hold = hold.won(row(etag), previous)
    return hold


def test_nothing_is_held_at_first() -> None:
    assert Lease() == Lease(owner_id="", taken=False, was_held=False)


def test_the_first_claim_takes_the_partition() -> None:
    hold = held("e1")
    assert (hold.owner_id, hold.taken, hold.was_held) == ("me", True, True)


def test_a_renewal_takes_nothing() -> None:
    assert not held("e1").settled().won(row("e2"), "e1").taken


def test_a_renewal_before_the_first_list_leaves_the_taking_open() -> None:
    assert held("e1", "e2").taken


def test_taking_it_back_after_a_loss_is_a_taking() -> None:
    hold = held("e1").settled().lost().won(row("e9"), "e8")
    assert (hold.taken, hold.was_held) == (True, True)


def test_another_owner_id_of_the_same_store_is_a_taking() -> None:
    assert held("e1").settled().won(row("e2", "me, restarted"), "e1").taken


def test_a_loss_cancels_the_taking() -> None:
    hold = held("e1").lost()
    assert (hold.owner_id, hold.taken, hold.was_held) == ("", False, True)


def test_a_release_ends_the_hold_and_remembers_that_it_was() -> None:
    hold = held("e1").won(row("e2", ""), "e1")
    assert (hold.owner_id, hold.taken, hold.was_held, hold.etags) == ("", False, True, ())


def test_a_list_that_shows_another_owner_is_a_loss() -> None:
    assert held("e1").listed(row("e2", "other")).owner_id == ""


def test_a_list_without_the_row_is_a_loss() -> None:
    assert held("e1").listed(None).owner_id == ""


def test_a_list_that_shows_the_own_row_changes_nothing() -> None:
    assert held("e1").listed(row("e1")) == held("e1")


def test_a_settled_and_a_lost_lease_keep_only_what_a_late_release_needs() -> None:
    kept = {"was_held": True, "winner": "me", "etags": ("e1",)}
    in_doubt = held("e1").listed(None)
    assert held("e1").settled() == Lease(owner_id="me", **kept)
    assert held("e1").lost() == in_doubt.lost() == Lease(**kept)


def test_a_partition_is_in_doubt_from_its_loss_until_it_is_won_back() -> None:
    hold = held("e1")
    assert not Lease().is_in_doubt
    assert not hold.is_in_doubt
    assert hold.listed(None).is_in_doubt
    won_back = hold.listed(None).won(row("e9"), "e8")
    assert (won_back.is_in_doubt, won_back.is_won_back) == (False, True)


def test_what_another_owner_id_wins_was_not_won_back() -> None:
    hold = held("e1").listed(None).won(row("e9", "me, restarted"), "e8")
    assert (hold.is_won_back, hold.taken) == (False, True)


def test_a_late_release_may_use_the_newest_etag_of_its_claim() -> None:
    for earlier in ("e1", "e2"):
        assert held("e1", "e2", "e3").newer_etag(earlier) == "e3"


def test_the_newest_etag_has_no_newer_one() -> None:
    assert held("e1", "e2", "e3").newer_etag("e3") is None
    assert held("e1").newer_etag("e1") is None


def test_a_foreign_etag_has_no_newer_one() -> None:
    assert held("e1", "e2").newer_etag("x") is None
    assert held("e1", "e2").newer_etag(None) is None


def test_a_late_release_does_not_reach_a_claim_after_a_loss() -> None:
    assert held("e1").lost().won(row("e9"), "e8").newer_etag("e1") is None


def test_a_late_release_does_not_reach_another_owner_id_of_the_same_store() -> None:
    assert held("e1").won(row("e2", "me, restarted"), "e1").newer_etag("e1") is None


@given(st.integers(1, 100))
def test_what_is_remembered_is_bounded(renewals: int) -> None:
    hold = held(*(f"e{number}" for number in range(renewals)))
    assert len(hold.etags) == min(renewals, REMEMBERED_ETAGS)
    assert hold.etags[-1] == f"e{renewals - 1}"
