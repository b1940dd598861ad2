"""Checks of the backend itself, whose clock and answers the author's accessors control."""

import time
from functools import partial

from eventhub_checkpoints.conformance.checks.bounds import BOUND, SLACK, seconds
from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.harness import Subject, raising
from eventhub_checkpoints.errors import StoreUnavailableError

STALL = ("stall", BASE)
LONG = 1.8
"""Seconds for which the backend does not answer: longer than a call may take."""


@check("G6", needs=("shift_clock",))
def a_backends_clock_that_is_off_changes_no_age(s: Subject) -> None:
    """An ownership on a backend whose clock is off is listed as old as it is."""
    for ahead in (3600.0, -3600.0):
        s.shift_clock(ahead)
        s.client.take(str(ahead), "a")
        row = s.client.row(str(ahead))
        assert row is not None, "the claimed partition is not listed"
        age = time.time() - row["last_modified_time"]
        assert abs(age) < 5.0, f"{ahead:+.0f} s of the backend's clock made its age {age:.0f} s"


@check("G6", needs=("shift_clock",))
def a_claim_on_a_clock_that_is_off_is_new(s: Subject) -> None:
    """A claim that was just won is new on the caller's clock, whatever the backend's says."""
    for ahead in (3600.0, -3600.0):
        s.shift_clock(ahead)
        age = time.time() - s.client.take(str(ahead), "a")["last_modified_time"]
        assert abs(age) < 5.0, f"a claim just won on a clock {ahead:+.0f} s off is {age:.0f} s old"


@check("G10", needs=STALL)
def a_stalled_list_ends(s: Subject) -> None:
    """A list from a backend that is silent ends after `operation_timeout`."""
    s.client.list_ownership()
    s.client.set(operation_timeout=BOUND)
    s.stall(LONG)
    took = seconds(partial(raising, StoreUnavailableError, s.client.list_ownership))
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G10", "G2", needs=STALL)
def a_stalled_claim_ends(s: Subject) -> None:
    """A claim on a backend that is silent ends after `operation_timeout`, and is not won."""
    s.client.list_ownership()
    s.client.set(operation_timeout=BOUND)
    s.stall(LONG)
    won: list[object] = []
    took = seconds(lambda: won.append(s.client.claim("0", "a")))
    assert won == [None], "a claim without an answer was returned as won"
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G10", needs=STALL)
def a_stalled_checkpoint_ends(s: Subject) -> None:
    """A checkpoint on a backend that is silent ends after `write_timeout`."""
    s.client.list_ownership()
    s.client.set(write_timeout=BOUND)
    s.stall(LONG)
    took = seconds(partial(raising, StoreUnavailableError, s.client.save, "0", 7))
    assert took < BOUND + SLACK, f"it took {took:.1f} s, {BOUND} s were allowed"


@check("G2", "G3", needs=STALL)
def a_short_stall_costs_nothing(s: Subject) -> None:
    """A backend that is silent for a moment, and then answers, costs neither claim nor progress."""
    mine = s.client.take_listed("0", "a")
    s.stall(0.3)
    assert s.client.claim("0", "a", mine["etag"]), "a short silence cost the partition"
    s.stall(0.3)
    s.client.save("0", 7)
    assert s.client.position("0") == 7, "a short silence cost the checkpoint"
