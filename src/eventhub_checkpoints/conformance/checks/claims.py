"""Checks of sequential claims: which one wins, and what the winner gets."""

from eventhub_checkpoints.conformance.contract import check
from eventhub_checkpoints.conformance.harness import Subject


@check("G1")
def a_first_claim_wins(s: Subject) -> None:
    """A claim without an etag wins a partition that nobody has claimed before."""
    assert s.client.claim("0", "a") is not None, "the first claim was left out"
    assert s.client.owner("0") == "a", "the winner is not listed as the owner"


@check("G1")
def an_empty_etag_is_no_etag(s: Subject) -> None:
    """A claim with the etag `""` or None is one without: it wins what nobody has claimed."""
    assert s.client.claim("0", "a", "") is not None, 'a first claim with the etag "" was left out'
    proposal = {**s.client.proposal("1", "a"), "etag": None}
    assert s.client.claim_ownership([proposal]), "a first claim with the etag None was left out"


@check("G1")
def a_claim_without_an_etag_loses_to_a_stored_row(s: Subject) -> None:
    """A claim without an etag loses where a row is stored, and changes nothing."""
    s.client.take("0", "a")
    before = s.client.holder("0")
    assert s.another().claim("0", "b") is None, "a claim without an etag took an owned partition"
    assert s.client.holder("0") == before, "the lost claim changed the stored row"


@check("G1")
def an_empty_etag_loses_to_a_stored_row(s: Subject) -> None:
    """A claim with the etag `""` loses where a row is stored."""
    s.client.take("0", "a")
    assert s.another().claim("0", "b", "") is None, 'the etag "" took an owned partition'
    assert s.client.owner("0") == "a", "the lost claim changed the owner"


@check("G1")
def an_owner_without_the_etag_loses_too(s: Subject) -> None:
    """Being the stored owner wins nothing: the same owner's claim without an etag loses."""
    s.client.take("0", "a")
    assert s.client.claim("0", "a") is None, "the same owner won without the etag"


@check("G1")
def the_stored_etag_wins(s: Subject) -> None:
    """A claim with the stored etag wins: a renewal by the owner, a take-over by another."""
    first = s.client.take("0", "a")
    renewed = s.client.claim("0", "a", first["etag"])
    assert renewed is not None, "a renewal with the stored etag was left out"
    assert s.another().claim("0", "b", renewed["etag"]), "a take-over with it was left out"
    assert s.client.owner("0") == "b", "the new owner is not listed"


@check("G1")
def a_stale_etag_loses(s: Subject) -> None:
    """A claim whose etag is no longer the stored one is left out, and changes nothing."""
    first = s.client.take("0", "a")
    s.client.take("0", "a", first["etag"])
    before = s.client.holder("0")
    assert s.another().claim("0", "b", first["etag"]) is None, "a stale etag won"
    assert s.client.holder("0") == before, "the lost claim changed the stored row"


@check("G1")
def an_invented_etag_loses(s: Subject) -> None:
    """A claim with an etag that was never given out loses where a row is stored."""
    won = s.client.take("0", "a")
    other = won["etag"][:-1] + ("1" if won["etag"][-1] == "0" else "0")
    assert s.another().claim("0", "b", other) is None, "an etag that was never given out won"


@check("G1")
def every_claim_gets_a_new_etag(s: Subject) -> None:
    """Each claim that wins gets an etag of its own, also when nothing else changes."""
    rows = [s.client.take("0", "a")]
    for _ in range(3):
        rows.append(s.client.take("0", "a", rows[-1]["etag"]))
    assert len({row["etag"] for row in rows}) == len(rows), "an etag was given out twice"


@check("G1")
def an_etag_belongs_to_one_partition(s: Subject) -> None:
    """The etag of one partition's row wins no other partition."""
    etag = s.client.take("0", "a")["etag"]
    s.client.take("1", "a")
    assert s.another().claim("1", "b", etag) is None, "partition 0's etag won partition 1"


@check("G1")
def a_listed_etag_wins(s: Subject) -> None:
    """The etag that a list gives wins like the one that the claim gave."""
    s.client.take("0", "a")
    row = s.another().row("0")
    assert row is not None, "the claimed partition is not listed"
    assert s.another().claim("0", "b", row["etag"]), "a claim with the listed etag was left out"


@check("G1", "P6")
def the_old_owner_loses_after_a_take_over(s: Subject) -> None:
    """Who was taken over cannot renew with the etag it had."""
    mine = s.client.take("0", "a")
    s.another().take("0", "b", mine["etag"])
    assert s.client.claim("0", "a", mine["etag"]) is None, "the old owner renewed after a take-over"
    assert s.client.owner("0") == "b", "the old owner's claim changed the owner"


@check("G1", "G2", "P2")
def a_lost_claim_is_left_out_of_its_batch(s: Subject) -> None:
    """Of a batch, the claims that lost are left out of the result, and nothing is raised."""
    s.another().take("1", "b")
    batch = [s.client.proposal(one, "a") for one in ("0", "1", "2")]
    won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
    assert won == ["0", "2"], f"of 0, 1 (taken) and 2 the result has {won}"
    assert s.client.owner("1") == "b", "a claim that was left out changed the owner"


@check("G1", "P2")
def every_winner_of_a_batch_is_returned(s: Subject) -> None:
    """A batch of first claims and renewals returns every one that won, and stores it."""
    first = s.client.take("0", "a")
    batch = [s.client.proposal("0", "a", first["etag"])]
    batch += [s.client.proposal(str(one), "a") for one in range(1, 40)]
    won = s.client.claim_ownership(batch)
    assert len(won) == 40, f"of 40 claims that win, the result has {len(won)}"
    listed = {row["partition_id"] for row in s.client.list_ownership()}
    assert listed == {row["partition_id"] for row in won}, "not all winners are listed"
