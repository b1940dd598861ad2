"""Checks of claims on a faulty backend: only a claim that the backend has confirmed is owned."""

import time
from dataclasses import replace
from typing import Any

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import (
    ALWAYS,
    ANSWER_LOST,
    NOT_READY,
    REFUSED,
    UNAVAILABLE,
    Fault,
)
from eventhub_checkpoints.conformance.harness import Subject, raising
from eventhub_checkpoints.errors import InvalidRecordError, StoreAccessError, StoreNotReadyError

SHORT = 0.3
"""Timeout of an operation in these checks, in seconds."""


@check("G2", needs=(BASE,))
def a_claim_is_asked_again(s: Subject) -> None:
    """A claim that found the backend away is tried again."""
    s.faults().plan("try_claim", UNAVAILABLE, times=2)
    assert s.client.claim("0", "a"), "the claim was given up after a short absence"


@check("G2", needs=(BASE,))
def a_list_is_asked_again(s: Subject) -> None:
    """A list that found the backend away is asked for again."""
    s.client.take("0", "a")
    s.client.save("0", 7)
    faults = s.faults()
    for hook in ("read_ownerships", "read_checkpoints"):
        faults.plan(hook, UNAVAILABLE)
    assert s.client.owner("0") == "a", "the list of ownerships is not complete"
    assert s.client.position("0") == 7, "the list of checkpoints is not complete"


@check("G2", needs=(BASE,))
def an_unknown_first_claim_is_left_out(s: Subject) -> None:
    """A first claim whose outcome stays unknown is left out, and nothing is raised."""
    s.client.set(operation_timeout=SHORT)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    assert s.client.claim("0", "a") is None, "a claim that nobody confirmed was returned as won"


@check("G2", needs=(BASE,))
def a_lost_answer_is_recognised(s: Subject) -> None:
    """A claim that was carried out while its answer was lost is recognised, and won."""
    s.faults().plan("try_claim", ANSWER_LOST)
    won = s.client.claim("0", "a")
    assert won is not None, "an own claim was taken for somebody else's"
    row = s.client.row("0")
    assert row is not None, "the claimed partition is not listed"
    assert row["etag"] == won["etag"], "the etag is not the stored one"


@check("G2", needs=(BASE,))
def a_lost_answer_of_a_renewal_is_recognised(s: Subject) -> None:
    """The same for a renewal: it is won with the etag that is stored now."""
    mine = s.client.take("0", "a")
    s.faults().plan("try_claim", ANSWER_LOST)
    won = s.client.claim("0", "a", mine["etag"])
    assert won is not None, "an own renewal was taken for somebody else's claim"
    assert won["etag"] != mine["etag"], "the renewal kept its old etag"
    assert s.client.claim("0", "a", won["etag"]), "its etag is not the stored one"


@check("G2", needs=(BASE,))
def a_rival_after_a_lost_answer_is_no_own_claim(s: Subject) -> None:
    """After a lost answer, a row that somebody else has taken meanwhile is not won."""
    rival = s.another()

    def steal() -> None:
        row = rival.row("0")
        rival.take("0", "b", row["etag"] if row else None)

    s.faults().plan("try_claim", replace(ANSWER_LOST, meanwhile=steal))
    assert s.client.claim("0", "a") is None, "a rival's row was taken for an own claim"
    assert s.client.owner("0") == "b", "the rival's row was changed"


@check("G2", needs=(BASE,))
def a_plain_conflict_is_not_looked_into(s: Subject) -> None:
    """A claim that lost, and was answered, costs one request."""
    s.another().take("0", "b")
    faults = s.faults()
    assert s.client.claim("0", "a") is None, "a claim without an etag took an owned partition"
    asked = (faults.count("try_claim"), faults.count("read_ownerships"))
    assert asked == (1, 0), f"a lost claim asked for {asked[0]} claims and {asked[1]} lists"


@check("G2", needs=(BASE,))
def an_unknown_renewal_is_kept(s: Subject) -> None:
    """A renewal whose outcome stays unknown is returned as it was: old etag, old time."""
    mine = s.client.take("0", "a")
    s.client.set(operation_timeout=SHORT)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    kept = s.client.claim("0", "a", mine["etag"])
    assert kept is not None, "a partition was given up because one renewal had no answer"
    assert kept == mine, f"it was {mine} and came back as {kept}"


@check("G2", needs=(BASE,))
def an_unknown_renewal_is_not_kept_for_ever(s: Subject) -> None:
    """A renewal is kept without an answer for `keep_unconfirmed` seconds, and no longer."""
    mine = s.client.take("0", "a")
    s.client.set(operation_timeout=SHORT, keep_unconfirmed=0.0)
    s.faults().plan("try_claim", UNAVAILABLE, times=ALWAYS)
    assert s.client.claim("0", "a", mine["etag"]) is None, "an old ownership was kept unconfirmed"


def aged(listing: Any) -> Any:
    """The list as if a minute had passed on the backend's clock."""
    server_now = time.time() if listing.server_now is None else listing.server_now
    return replace(listing, server_now=server_now + 60.0)


@check("G2", needs=(BASE,))
def a_listed_ownership_is_kept_by_its_age(s: Subject) -> None:
    """An ownership known from a list is kept unconfirmed as long as the list's row is young."""
    s.another().take("0", "a")
    s.another().take("1", "a")
    young, old = s.others(2)
    s.faults(old).plan("read_ownerships", Fault(changed=aged))
    for client, is_kept in ((young, True), (old, False)):
        row = client.row("0")
        assert row is not None, "the claimed partition is not listed"
        client.set(operation_timeout=SHORT)
        s.faults(client).plan("try_claim", UNAVAILABLE, times=ALWAYS)
        kept = client.claim("0", "a", row["etag"]) is not None
        assert kept is is_kept, f"kept: {kept}; the row was {'young' if is_kept else 'old'}"


@check("G2", needs=(BASE,))
def a_refused_claim_raises_after_the_others(s: Subject) -> None:
    """Refused by the backend, a batch raises once; its other claims are made before."""
    faults = s.faults()
    faults.plan("try_claim", REFUSED, times=ALWAYS, partition_id="1")
    batch = [s.client.proposal(one, "a") for one in "012"]
    raising(StoreAccessError, s.client.claim_ownership, batch)
    stored = sorted(row["partition_id"] for row in s.client.list_ownership())
    assert stored == ["0", "2"], f"0 and 2 could be claimed, and {stored} are stored"
    assert faults.count("try_claim") == 3, "a claim that was refused was tried again"


@check("G2", needs=(BASE,))
def winners_of_a_batch_that_raises_are_remembered(s: Subject) -> None:
    """What a batch won before it raised is known to the store: a release gives it up."""
    won = s.client.claim_ownership([s.client.proposal(one, "a") for one in "01"])
    faults = s.faults()
    faults.plan("try_claim", REFUSED, partition_id="1")
    raising(StoreAccessError, s.client.claim_ownership, won)
    s.client.release(won[0])
    assert s.client.owner("0") == "", "the renewal that was won before the error was forgotten"


@check("G2", needs=(BASE,))
def a_backend_that_is_not_ready_raises(s: Subject) -> None:
    """A missing container or table is raised as `StoreNotReadyError`, by each method."""
    faults = s.faults()
    for hook in ("read_ownerships", "read_checkpoints", "try_claim", "write_checkpoint"):
        faults.plan(hook, NOT_READY, times=ALWAYS)
    raising(StoreNotReadyError, s.client.claim, "0", "a")
    raising(StoreNotReadyError, s.client.list_ownership)
    raising(StoreNotReadyError, s.client.list_checkpoints)
    raising(StoreNotReadyError, s.client.save, "0", 7)


@check("G2", needs=(BASE,))
def an_unusable_proposal_raises_after_the_others(s: Subject) -> None:
    """A proposal that lacks its partition raises `InvalidRecordError`; the others are made."""
    broken = s.client.proposal("0", "a")
    del broken["partition_id"]
    batch = [broken, s.client.proposal("1", "a")]
    error = raising(InvalidRecordError, s.client.claim_ownership, batch)
    assert error.field == "partition_id", f"the error names {error.field}"
    assert s.client.owner("1") == "a", "the proposal that was good was not tried"
