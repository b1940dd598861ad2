"""Checks of time: timeouts of calls, concurrency, and clocks."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import ALWAYS, HANGS, Fault
from eventhub_checkpoints.conformance.harness import Subject, race, raising
from eventhub_checkpoints.errors import StoreUnavailableError

BOUND = 0.6
"""Maximum duration of a call in these checks, in seconds."""
SLACK = 1.0
"""Additional seconds that it may take on a busy machine."""


def seconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.monotonic()
    function()
    return time.monotonic() - start


@check("G10", needs=(BASE,))
def a_hung_list_ends(s: Subject) -> None:
    """A list that nobody answers ends after `operation_timeout`, as unavailable."""
    s.client.set(operation_timeout=BOUND)
    faults = s.faults()
    for hook, ask in (
        ("read_ownerships", s.client.list_ownership),
        ("read_checkpoints", s.client.list_checkpoints),
    ):
        faults.plan(hook, HANGS, times=ALWAYS)
        took = seconds(partial(raising, StoreUnavailableError, ask))
        assert took < BOUND + SLACK, f"{hook} took {took:.1f} s, {BOUND} s were allowed"


@check("G10", "G2", needs=(BASE,))
def a_hung_batch_ends(s: Subject) -> None:
    """A batch of claims that nobody answers ends after `operation_timeout`, and wins nothing."""
    s.client.set(operation_timeout=BOUND)
    s.faults().plan("try_claim", HANGS, times=ALWAYS)
    won: list[Any] = []
    batch = [s.client.proposal(one, "a") for one in "012"]
    took = seconds(lambda: won.extend(s.client.claim_ownership(batch)))
    assert won == [], "claims without an answer were returned as won"
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G10", "G2", needs=(BASE,))
def a_hung_claim_spares_the_others(s: Subject) -> None:
    """One claim that nobody answers does not cost the others of its batch."""
    s.client.set(operation_timeout=2 * BOUND)
    faults = s.faults()
    faults.must_claim_singly()
    faults.plan("try_claim", HANGS, times=ALWAYS, partition_id="1")
    batch = [s.client.proposal(one, "a") for one in "012"]
    won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
    assert won == ["0", "2"], f"1 was hung; of 0 and 2, {won} was won"


@check("G10", needs=(BASE,))
def a_hung_checkpoint_ends(s: Subject) -> None:
    """A checkpoint that nobody answers ends after `write_timeout`, also behind another."""
    s.client.set(write_timeout=BOUND)
    s.faults().plan("write_checkpoint", HANGS, times=ALWAYS)
    save = partial(raising, StoreUnavailableError, s.client.save, "0", 7)
    took = seconds(lambda: race([save, save]))
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G10", "G8", needs=(BASE,))
def a_hung_release_ends(s: Subject) -> None:
    """A release that nobody answers ends after `write_timeout`, and raises nothing."""
    mine = s.client.take("0", "a")
    s.client.set(write_timeout=BOUND)
    s.faults().plan("try_claim", HANGS, times=ALWAYS)
    took = seconds(lambda: s.client.release(mine))
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G10", needs=(BASE,))
def claims_of_a_batch_run_side_by_side(s: Subject) -> None:
    """The claims of a batch do not wait for one another."""
    faults = s.faults()
    faults.must_claim_singly()
    faults.plan("try_claim", Fault(seconds=0.2), times=ALWAYS)
    batch = [s.client.proposal(str(one), "a") for one in range(8)]
    won = s.client.claim_ownership(batch)
    assert len(won) == 8, f"of 8 slow claims {len(won)} were won"
    assert faults.peak("try_claim") == 8, f"at most {faults.peak('try_claim')} were under way"


@check("G10", needs=(BASE,))
def no_more_claims_at_once_than_allowed(s: Subject) -> None:
    """At most `max_concurrency` claims of a batch are under way at once."""
    faults = s.faults()
    faults.must_claim_singly()
    s.client.set(max_concurrency=3)
    faults.plan("try_claim", Fault(seconds=0.02), times=ALWAYS)
    s.client.claim_ownership([s.client.proposal(str(one), "a") for one in range(12)])
    assert faults.peak("try_claim") <= 3, f"{faults.peak('try_claim')} of at most 3 at once"


def on_a_clock(ahead: float, listing: Any) -> Any:
    """The list as a backend gives it whose clock is ahead by so many seconds."""
    now = time.time() if listing.server_now is None else listing.server_now
    rows = [replace(row, last_modified_time=row.last_modified_time + ahead) for row in listing.rows]
    return replace(listing, rows=rows, server_now=now + ahead)


@check("G6", needs=(BASE,))
def a_clock_that_is_off_changes_no_age(s: Subject) -> None:
    """An ownership is as old as the backend's own clock says, however far that clock is off."""
    s.client.take("0", "a")
    faults = s.faults()
    for ahead in (3600.0, -3600.0):
        faults.plan("read_ownerships", Fault(changed=partial(on_a_clock, ahead)))
        row = s.client.row("0")
        assert row is not None, "the claimed partition is not listed"
        age = time.time() - row["last_modified_time"]
        assert abs(age) < 5.0, f"{ahead:+.0f} s of the backend's clock made its age {age:.0f} s"


@check("G6", needs=(BASE,))
def an_age_is_never_negative(s: Subject) -> None:
    """An ownership from the backend's future is new, not younger than that."""
    s.client.take("0", "a")

    def from_the_future(listing: Any) -> Any:
        return replace(on_a_clock(3600.0, listing), server_now=listing.server_now)

    s.faults().plan("read_ownerships", Fault(changed=from_the_future))
    row = s.client.row("0")
    assert row is not None, "the claimed partition is not listed"
    assert row["last_modified_time"] <= time.time(), "its last change lies in the future"
