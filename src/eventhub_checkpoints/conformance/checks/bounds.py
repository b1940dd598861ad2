"""Checks of time: timeouts, concurrency (G10), and clocks (G6).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from eventhub_checkpoints.conformance.clients import Row
from eventhub_checkpoints.conformance.contract import BASE, NotShown, check
from eventhub_checkpoints.conformance.faults import ALWAYS, HANGS, LONGEST_HANG, Fault
from eventhub_checkpoints.conformance.harness import Subject, outcome_of, raising
from eventhub_checkpoints.errors import StoreUnavailableError

BOUND = 3.0
"""Time limit of a call in these checks, in seconds."""
ALLOWED = 2 * BOUND
"""Seconds that such a call may take: twice its limit, because the machine may be busy."""
TRIES, LATE = 3, 1.25
"""A call with the store's own time limit is over it if each of so many tries takes so many times as
long; once may be the machine's fault.
"""
BATCH_LIMIT = 2 * BOUND
"""Time limit of a batch in which one claim hangs: the others must end on a busy machine, too."""
NEW = 60.0
"""Seconds below which the age of an ownership counts as new."""
STALL = ("stall", BASE)


def assert_ends_in_time(name: str, function: Callable[..., object], *args: object) -> None:
    """Call the function, which calls a method of this name with a time limit of `BOUND` seconds.

    An error of the function says less than that it came late, and is replaced.
    """
    start = time.monotonic()
    try:
        function(*args)
    finally:
        assert_in_time(name, time.monotonic() - start, BOUND, ALLOWED)


def assert_in_time(name: str, took: float, limit: float, allowed: float) -> None:
    """Check the seconds that a call of a method of this name took."""
    assert took <= allowed, f"{name} took {took:.1f} s, over its limit of {limit:g} s"


def assert_new(row: Row, ahead: float) -> None:
    """Check that an ownership is new, although the backend's clock is ahead."""
    age = time.time() - row["last_modified_time"]
    assert abs(age) < NEW, f"{ahead:+.0f} s of the backend's clock made its age {age:.0f} s"


def assert_unavailable(s: Subject, name: str, *calls: Callable[[], object]) -> None:
    """Make calls at the same moment: each must raise `StoreUnavailableError` in time."""
    results: list[object] = []
    assert_ends_in_time(name, lambda: results.extend(s.at_once(*calls)))
    kinds = [type(result).__name__ for result in results]
    assert kinds == [StoreUnavailableError.__name__] * len(calls), f"the calls ended with {kinds}"


@check("G10", needs=(BASE,))
def calls_end_within_their_limits(s: Subject) -> None:
    """Lists, claims and checkpoints end within the time limits in the store's own settings."""
    settings = s.client.store.settings
    calls: dict[str, tuple[float, Callable[[], object]]] = {
        "list_ownership": (settings.operation_timeout, s.client.list_ownership),
        "list_checkpoints": (settings.operation_timeout, s.client.list_checkpoints),
        "claim_ownership": (settings.operation_timeout, partial(s.client.claim, "0", "a")),
        "update_checkpoint": (settings.write_timeout, partial(s.client.save, "0", 7)),
    }
    for name, (limit, call) in calls.items():
        took = math.inf
        for _ in range(TRIES):
            start = time.monotonic()
            outcome_of(call)  # its errors are for other checks
            took = min(took, time.monotonic() - start)
            if took <= LATE * limit:
                break
        assert_in_time(name, took, limit, LATE * limit)


@check("G10", needs=(BASE,), waits=True)
def a_hung_list_ends(s: Subject) -> None:
    """A list without a response raises `StoreUnavailableError` after `operation_timeout`."""
    s.client.set(operation_timeout=BOUND)
    faults = s.faults()
    faults.plan("read_ownerships", HANGS, times=ALWAYS)
    faults.plan("read_checkpoints", HANGS, times=ALWAYS)
    store = s.client.store
    lists = [partial(read, *s.scope) for read in (store.list_ownership, store.list_checkpoints)]
    assert_unavailable(s, "list_ownership or list_checkpoints", *lists)


@check("G10", "G2", needs=(BASE,), waits=True)
def a_hung_batch_ends(s: Subject) -> None:
    """Claims without a response end after `operation_timeout`, and none is returned."""
    s.client.set(operation_timeout=BOUND)
    s.faults().plan("try_claim", HANGS, times=ALWAYS)
    won: list[Row] = []
    batch = s.client.proposals("012", "a")
    assert_ends_in_time("claim_ownership", lambda: won.extend(s.client.claim_ownership(batch)))
    assert won == [], "claims without a response were returned as successful"


@check("G10", "G2", needs=(BASE,), waits=True)
def a_hung_claim_spares_the_others(s: Subject) -> None:
    """A claim without a response does not affect the other claims of its batch."""
    s.client.set(operation_timeout=BATCH_LIMIT)
    faults = s.faults()
    faults.must_claim_singly()
    faults.plan("try_claim", HANGS, times=ALWAYS, partition_id="1")
    batch = s.client.proposals("012", "a")
    won = [row["partition_id"] for row in s.client.claim_ownership(batch)]
    assert won == ["0", "2"], f"1 had no response; of 0 and 2, {won} succeeded"


@check("G10", needs=(BASE,), waits=True)
def a_hung_checkpoint_ends(s: Subject) -> None:
    """A checkpoint without a response ends after `write_timeout`, including the wait in turn."""
    s.client.set(write_timeout=BOUND)
    s.faults().plan("write_checkpoint", HANGS, times=ALWAYS)
    write = partial(s.client.store.update_checkpoint, s.client.checkpoint("0", 7, "4711"))
    assert_unavailable(s, "update_checkpoint", write, write)


@check("G10", "G8", needs=(BASE,), waits=True)
def a_hung_release_ends(s: Subject) -> None:
    """A release without a response ends after `write_timeout`, without an error."""
    mine = s.client.take("0", "a")
    s.client.set(write_timeout=BOUND)
    s.faults().plan("try_claim", HANGS, times=ALWAYS)
    assert_ends_in_time("the release by claim_ownership", s.client.release, mine)


@check("G10", needs=(BASE,))
def claims_of_a_batch_run_side_by_side(s: Subject) -> None:
    """The claims of a batch run concurrently."""
    faults = s.faults()
    faults.must_claim_singly()
    all_run = Fault(until=lambda: faults.peak("try_claim") == 8)
    faults.plan("try_claim", all_run, times=ALWAYS)
    batch = s.client.proposals(range(8), "a")
    won = s.client.claim_ownership(batch)
    assert faults.peak("try_claim") == 8, f"at most {faults.peak('try_claim')} ran concurrently"
    assert len(won) == 8, f"of 8 slow claims {len(won)} were won"


@check("G10", needs=(BASE,))
def no_more_claims_at_once_than_allowed(s: Subject) -> None:
    """At most `max_concurrency` claims of a batch run at the same time."""
    faults = s.faults()
    faults.must_claim_singly()
    s.client.set(max_concurrency=3)
    faults.plan("try_claim", Fault(seconds=0.02), times=ALWAYS)
    s.client.claim_ownership(s.client.proposals(range(12), "a"))
    assert faults.peak("try_claim") <= 3, f"{faults.peak('try_claim')} of at most 3 at once"


def on_a_clock(ahead: float, listing: Any) -> Any:
    """Return the list as a backend would whose clock is ahead by this many seconds."""
    now = time.time() if listing.server_now is None else listing.server_now
    rows = [replace(row, last_modified_time=row.last_modified_time + ahead) for row in listing.rows]
    return replace(listing, rows=rows, server_now=now + ahead)


@check("G6", needs=(BASE,))
def a_clock_that_is_off_changes_no_age(s: Subject) -> None:
    """The age of an ownership is computed on the backend's clock, even if that is wrong."""
    s.client.take("0", "a")
    faults = s.faults()
    for ahead in (3600.0, -3600.0):
        faults.plan("read_ownerships", Fault(changed=partial(on_a_clock, ahead)))
        assert_new(s.client.ownership_of("0"), ahead)


@check("G6", needs=(BASE,))
def an_age_is_never_negative(s: Subject) -> None:
    """An ownership whose time is in the backend's future is listed with the current time."""
    s.client.take("0", "a")

    def from_the_future(listing: Any) -> Any:
        return replace(on_a_clock(3600.0, listing), server_now=listing.server_now)

    s.faults().plan("read_ownerships", Fault(changed=from_the_future))
    row = s.client.ownership_of("0")
    assert row["last_modified_time"] <= time.time(), "its last_modified_time lies in the future"


@check("G6", needs=("shift_clock",))
def a_backends_clock_that_is_off_changes_no_age(s: Subject) -> None:
    """The age of a listed ownership is correct although the backend's clock is wrong."""
    for ahead in (3600.0, -3600.0):
        s.shift_clock(ahead)
        s.client.take(str(ahead), "a")
        assert_new(s.client.ownership_of(str(ahead)), ahead)


@check("G6", needs=("shift_clock",))
def a_claim_on_a_clock_that_is_off_is_new(s: Subject) -> None:
    """A successful claim has the caller's time although the backend's clock is wrong."""
    for ahead in (3600.0, -3600.0):
        s.shift_clock(ahead)
        assert_new(s.client.take(str(ahead), "a"), ahead)


@check("G10", needs=STALL)
def a_stalled_list_ends(s: Subject) -> None:
    """A list from a backend that does not respond ends after `operation_timeout`."""
    s.client.take("0", "a")
    s.client.set(operation_timeout=BOUND)
    s.stall(LONGEST_HANG)
    rows: list[Row] = []
    with suppress(StoreUnavailableError):
        assert_ends_in_time("list_ownership", lambda: rows.extend(s.client.list_ownership()))
        listed = [row["partition_id"] for row in rows]
        assert listed == ["0"], "a list without a response left out what is stored"
        raise NotShown("this backend lists during a `stall`, and correctly")


@check("G10", "G2", needs=STALL)
def a_stalled_claim_ends(s: Subject) -> None:
    """A claim on a backend that does not respond ends after `operation_timeout`, as lost."""
    s.client.list_ownership()
    s.client.set(operation_timeout=BOUND)
    s.stall(LONGEST_HANG)
    won: list[Row | None] = []
    assert_ends_in_time("claim_ownership", lambda: won.append(s.client.claim("0", "a")))
    assert won == [None], "a claim without a response was returned as successful"


@check("G10", needs=STALL)
def a_stalled_checkpoint_ends(s: Subject) -> None:
    """A checkpoint on a backend that does not respond ends after `write_timeout`."""
    s.client.list_ownership()
    s.client.set(write_timeout=BOUND)
    s.stall(LONGEST_HANG)
    assert_ends_in_time("update_checkpoint", raising, StoreUnavailableError, s.client.save, "0", 7)


@check("G2", "G3", needs=STALL)
def a_short_stall_costs_nothing(s: Subject) -> None:
    """A backend that responds late, but in time, loses neither claims nor checkpoints."""
    mine = s.client.take_listed("0", "a")
    s.stall(0.3)
    assert s.client.claim("0", "a", mine["etag"]), "a short pause of the backend lost the partition"
    s.stall(0.3)
    s.client.save("0", 7)
    assert s.client.position("0") == 7, "a short pause of the backend lost the checkpoint"
