"""Checks of ownership: one winner (G1), and only confirmed claims are returned (G2).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import time
from dataclasses import replace
from typing import Any

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import (
    ALWAYS,
    ANSWER_LOST,
    HOOKS,
    NOT_READY,
    REFUSED,
    UNAVAILABLE,
    Fault,
)
from eventhub_checkpoints.conformance.harness import Subject, raising
from eventhub_checkpoints.errors import InvalidRecordError, StoreAccessError, StoreNotReadyError

SHORT = 0.3
"""Timeout of an operation in these checks, in seconds."""


@check("G1")
def a_first_claim_wins(s: Subject) -> None:
    """A claim without an etag succeeds if the partition has never been claimed."""
    assert s.client.claim("0", "a") is not None, "the first claim was omitted"
    assert s.client.owner("0") == "a", "the winner is not listed as the owner"


@check("G1")
def an_empty_etag_is_no_etag(s: Subject) -> None:
    """A claim with the etag `""` or None is treated like a claim without an etag."""
    assert s.client.claim("0", "a", "") is not None, 'a first claim with the etag "" was omitted'
    proposal = {**s.client.proposal("1", "a"), "etag": None}
    assert s.client.claim_ownership([proposal]), "a first claim with the etag None was omitted"


@check("G1")
def a_claim_without_an_etag_loses_to_a_stored_row(s: Subject) -> None:
    """A claim without an etag fails if a row is stored, and changes nothing."""
    s.client.take("0", "a")
    before = s.client.holder("0")
    assert s.another().claim("0", "b") is None, "a claim without an etag took an owned partition"
    assert s.client.holder("0") == before, "the lost claim changed the stored row"


@check("G1")
def an_empty_etag_loses_to_a_stored_row(s: Subject) -> None:
    """A claim with the etag `""` fails if a row is stored."""
    s.client.take("0", "a")
    assert s.another().claim("0", "b", "") is None, 'the etag "" took an owned partition'
    assert s.client.owner("0") == "a", "the lost claim changed the owner"


@check("G1")
def an_owner_without_the_etag_loses_too(s: Subject) -> None:
    """A claim without an etag fails even if it comes from the stored owner."""
    s.client.take("0", "a")
    assert s.client.claim("0", "a") is None, "the same owner won without the etag"


@check("G1")
def the_stored_etag_wins(s: Subject) -> None:
    """A claim with the stored etag succeeds, as a renewal or by another owner."""
    first = s.client.take("0", "a")
    renewed = s.client.claim("0", "a", first["etag"])
    assert renewed is not None, "a renewal with the stored etag was omitted"
    assert s.another().claim("0", "b", renewed["etag"]), "a takeover with it was omitted"
    assert s.client.owner("0") == "b", "the new owner is not listed"


@check("G1")
def a_stale_etag_loses(s: Subject) -> None:
    """A claim with an outdated etag is omitted from the result, and changes nothing."""
    first = s.client.take("0", "a")
    s.client.take("0", "a", first["etag"])
    before = s.client.holder("0")
    assert s.another().claim("0", "b", first["etag"]) is None, "a stale etag won"
    assert s.client.holder("0") == before, "the lost claim changed the stored row"


@check("G1")
def an_invented_etag_loses(s: Subject) -> None:
    """A claim with an invented etag fails if a row is stored."""
    won = s.client.take("0", "a")
    other = won["etag"][:-1] + ("1" if won["etag"][-1] == "0" else "0")
    assert s.another().claim("0", "b", other) is None, "an invented etag won"


@check("G1")
def every_claim_gets_a_new_etag(s: Subject) -> None:
    """Every successful claim returns a new etag, even if nothing else changes."""
    rows = [s.client.take("0", "a")]
    for _ in range(3):
        rows.append(s.client.take("0", "a", rows[-1]["etag"]))
    assert len({row["etag"] for row in rows}) == len(rows), "an etag was returned twice"


@check("G1")
def an_etag_belongs_to_one_partition(s: Subject) -> None:
    """The etag of one partition is not valid for another partition."""
    etag = s.client.take("0", "a")["etag"]
    s.client.take("1", "a")
    assert s.another().claim("1", "b", etag) is None, "partition 0's etag won partition 1"


@check("G1")
def a_listed_etag_wins(s: Subject) -> None:
    """A claim succeeds with the listed etag as well as with the one that a claim returned."""
    s.client.take("0", "a")
    row = s.another().ownership_of("0")
    assert s.another().claim("0", "b", row["etag"]), "a claim with the listed etag was omitted"


@check("G1", "P6")
def the_old_owner_loses_after_a_takeover(s: Subject) -> None:
    """A previous owner cannot renew with its old etag."""
    mine = s.client.take("0", "a")
    s.another().take("0", "b", mine["etag"])
    assert s.client.claim("0", "a", mine["etag"]) is None, "the old owner renewed after a takeover"
    assert s.client.owner("0") == "b", "the old owner's claim changed the owner"


@check("G1", "G2", "P2")
def a_lost_claim_is_left_out_of_its_batch(s: Subject) -> None:
    """Lost claims of a batch are omitted from the result, and no error is raised."""
    s.another().take("1", "b")
    batch = s.client.proposals("012", "a")
    won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
    assert won == ["0", "2"], f"of 0, 1 (taken) and 2 the result has {won}"
    assert s.client.owner("1") == "b", "a claim that was omitted changed the owner"


@check("G1", "P2")
def every_winner_of_a_batch_is_returned(s: Subject) -> None:
    """A batch returns and stores all first claims and renewals that succeeded."""
    first = s.client.take("0", "a")
    batch = [s.client.proposal("0", "a", first["etag"])]
    batch += s.client.proposals(range(1, 40), "a")
    won = s.client.claim_ownership(batch)
    assert len(won) == 40, f"of 40 claims that win, the result has {len(won)}"
    listed = {row["partition_id"] for row in s.client.list_ownership()}
    assert listed == {row["partition_id"] for row in won}, "not all winners are listed"


@check("G2", needs=(BASE,))
def a_claim_is_asked_again(s: Subject) -> None:
    """A claim is retried while the backend is unavailable."""
    s.faults().plan("try_claim", UNAVAILABLE, times=2)
    assert s.client.claim("0", "a"), "the claim was not retried often enough"


@check("G2", needs=(BASE,))
def a_list_is_asked_again(s: Subject) -> None:
    """A list is retried while the backend is unavailable."""
    s.client.take("0", "a")
    s.client.save("0", 7)
    faults = s.faults()
    for hook in ("read_ownerships", "read_checkpoints"):
        faults.plan(hook, UNAVAILABLE)
    assert s.client.owner("0") == "a", "the list of ownerships is not complete"
    assert s.client.position("0") == 7, "the list of checkpoints is not complete"


@check("G2", needs=(BASE,))
def an_unknown_first_claim_is_left_out(s: Subject) -> None:
    """A first claim with an unknown outcome is omitted from the result, without an error."""
    s.client.set(operation_timeout=SHORT)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    assert s.client.claim("0", "a") is None, "an unconfirmed claim was returned as successful"


@check("G2", needs=(BASE,))
def a_lost_answer_is_recognised(s: Subject) -> None:
    """If a claim was stored but its response was lost, the retry recognises it as its own."""
    s.faults().plan("try_claim", ANSWER_LOST)
    won = s.client.claim("0", "a")
    assert won is not None, "the store did not recognise its own claim"
    row = s.client.ownership_of("0")
    assert row["etag"] == won["etag"], "the etag is not the stored one"


@check("G2", needs=(BASE,))
def a_lost_answer_of_a_renewal_is_recognised(s: Subject) -> None:
    """If a renewal was stored but its response was lost, it is returned with the stored etag."""
    mine = s.client.take("0", "a")
    s.faults().plan("try_claim", ANSWER_LOST)
    won = s.client.claim("0", "a", mine["etag"])
    assert won is not None, "the store did not recognise its own renewal"
    assert won["etag"] != mine["etag"], "the renewal kept its old etag"
    assert s.client.claim("0", "a", won["etag"]), "its etag is not the stored one"


@check("G2", needs=(BASE,))
def a_rival_after_a_lost_answer_is_no_own_claim(s: Subject) -> None:
    """After a lost response, a row that another owner has claimed is not returned."""
    rival = s.another()

    def take_over() -> None:
        row = rival.row("0")
        rival.take("0", "b", row["etag"] if row else None)

    s.faults().plan("try_claim", replace(ANSWER_LOST, meanwhile=take_over))
    assert s.client.claim("0", "a") is None, "a rival's row was returned as an own claim"
    assert s.client.owner("0") == "b", "the rival's row was changed"


@check("G2", needs=(BASE,))
def a_plain_conflict_is_not_looked_into(s: Subject) -> None:
    """A lost claim with a response costs one request."""
    s.another().take("0", "b")
    faults = s.faults()
    assert s.client.claim("0", "a") is None, "a claim without an etag took an owned partition"
    calls = (faults.count("try_claim"), faults.count("read_ownerships"))
    assert calls == (1, 0), f"a lost claim took {calls[0]} claims and {calls[1]} lists"


@check("G2", needs=(BASE,))
def an_unknown_renewal_is_kept(s: Subject) -> None:
    """A renewal with an unknown outcome is returned with its old etag and time."""
    mine = s.client.take("0", "a")
    s.client.set(operation_timeout=SHORT)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    kept = s.client.claim("0", "a", mine["etag"])
    assert kept is not None, "a partition was given up because one renewal had no response"
    assert kept == mine, f"it was {mine} and was returned as {kept}"


@check("G2", needs=(BASE,))
def an_unknown_renewal_is_not_kept_for_ever(s: Subject) -> None:
    """An unconfirmed renewal is returned for at most `keep_unconfirmed` seconds."""
    mine = s.client.take("0", "a")
    s.client.set(operation_timeout=SHORT, keep_unconfirmed=0.0)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    assert s.client.claim("0", "a", mine["etag"]) is None, "an old ownership was kept unconfirmed"


def aged(listing: Any) -> Any:
    """Return the list as if a minute had passed on the backend's clock."""
    server_now = time.time() if listing.server_now is None else listing.server_now
    return replace(listing, server_now=server_now + 60.0)


@check("G2", needs=(BASE,))
def a_listed_ownership_is_kept_by_its_age(s: Subject) -> None:
    """For a listed ownership, `keep_unconfirmed` counts from the time of the listed row."""
    s.another().take("0", "a")
    s.another().take("1", "a")
    young, old = s.others(2)
    s.faults(old).plan("read_ownerships", Fault(changed=aged))
    for client, is_kept in ((young, True), (old, False)):
        row = client.ownership_of("0")
        client.set(operation_timeout=SHORT)
        s.faults(client).plan("try_claim", UNAVAILABLE, times=ALWAYS)
        kept = client.claim("0", "a", row["etag"]) is not None
        assert kept is is_kept, f"kept: {kept}; the row was {'young' if is_kept else 'old'}"


@check("G2", needs=(BASE,))
def a_refused_claim_raises_after_the_others(s: Subject) -> None:
    """If a claim is refused, the batch raises one error, after its other claims were made."""
    faults = s.faults()
    faults.plan("try_claim", REFUSED, times=ALWAYS, partition_id="1")
    batch = s.client.proposals("012", "a")
    raising(StoreAccessError, s.client.claim_ownership, batch)
    stored = sorted(row["partition_id"] for row in s.client.list_ownership())
    assert stored == ["0", "2"], f"0 and 2 could be claimed, and {stored} are stored"
    assert faults.count("try_claim") == 3, "a claim that was refused was retried"


@check("G2", needs=(BASE,))
def winners_of_a_batch_that_raises_are_remembered(s: Subject) -> None:
    """Claims that succeeded before a batch raised are recorded, so they can be released."""
    won = s.client.claim_ownership(s.client.proposals("01", "a"))
    faults = s.faults()
    faults.plan("try_claim", REFUSED, partition_id="1")
    raising(StoreAccessError, s.client.claim_ownership, won)
    s.client.release(won[0])
    assert s.client.owner("0") == "", "the renewal that was won before the error was forgotten"


@check("G2", needs=(BASE,))
def a_backend_that_is_not_ready_raises(s: Subject) -> None:
    """If a container or table is missing, every method raises `StoreNotReadyError`."""
    faults = s.faults()
    for hook in HOOKS:
        faults.plan(hook, NOT_READY, times=ALWAYS)
    raising(StoreNotReadyError, s.client.claim, "0", "a")
    raising(StoreNotReadyError, s.client.list_ownership)
    raising(StoreNotReadyError, s.client.list_checkpoints)
    raising(StoreNotReadyError, s.client.save, "0", 7)


@check("G2", needs=(BASE,))
def an_unusable_proposal_raises_after_the_others(s: Subject) -> None:
    """A claim without a partition id raises `InvalidRecordError` after the others were made."""
    broken = s.client.proposal("0", "a")
    del broken["partition_id"]
    batch = [broken, s.client.proposal("1", "a")]
    error = raising(InvalidRecordError, s.client.claim_ownership, batch)
    assert error.field == "partition_id", f"the error names {error.field}"
    assert s.client.owner("1") == "a", "the valid claim was not made"
