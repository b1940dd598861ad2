"""Checks that a checkpoint does not go back unless it is forced (G3).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from eventhub_checkpoints import errors
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import (
    ALWAYS,
    ANSWER_LOST,
    DELAY_LIMIT,
    REFUSED,
    UNAVAILABLE,
    Fault,
)
from eventhub_checkpoints.conformance.harness import Subject, raising

SHORT = 0.3
"""Timeout of a write in these checks, in seconds."""
WRITE = "write_checkpoint"


@check("G3", "P11", "P24")
def a_zombies_checkpoint_is_refused(s: Subject) -> None:
    """A previous owner cannot store a checkpoint below that of the new owner."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    old.save("0", 10)
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "the old owner's checkpoint replaced the new owner's"


@check("G3", "P11")
def a_zombie_of_the_first_checkpoint_is_refused(s: Subject) -> None:
    """A previous owner that has never read a checkpoint cannot store a lower one either."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "a first checkpoint replaced a newer one of another owner"


@check("G3", "P24")
def a_checkpoint_above_a_strangers_is_stored(s: Subject) -> None:
    """A checkpoint higher than another writer's is stored."""
    old, new = s.client, s.another()
    old.take_listed("0", "a")
    new.take_listed("0", "b")
    new.save("0", 20)
    old.save_or_be_refused("0", 25)
    assert s.client.position("0") == 25, "a checkpoint above the stored one was not stored"


@check("G3")
def an_equal_checkpoint_is_success(s: Subject) -> None:
    """Storing an equal sequence number succeeds, also over another writer's checkpoint."""
    s.client.save("0", 20)
    s.client.save("0", 20)
    s.another().save("0", 20)
    assert s.client.position("0") == 20, "an equal checkpoint changed the sequence number"


@check("G3")
def what_nobody_else_wrote_may_go_down(s: Subject) -> None:
    """A client may go below its own checkpoint, since a recreated event hub starts at 0."""
    s.client.take_listed("0", "a")
    s.client.save("0", 1000)
    s.client.save("0", 0)
    assert s.client.position("0") == 0, "the owner could not start again at 0"


@check("G3")
def a_new_owner_may_start_again_at_zero(s: Subject) -> None:
    """A new owner may store a checkpoint below the one it listed after its claim."""
    s.client.take_listed("0", "a")
    s.client.save("0", 1000)
    new = s.another()
    new.take_listed("0", "b")
    new.save("0", 0)
    assert s.client.position("0") == 0, "the new owner could not start again at 0"


@check("G3", "P23")
def a_reader_by_name_starts_where_its_list_says(s: Subject) -> None:
    """A client that never claims may store a checkpoint below the one in its latest list."""
    s.client.save("0", 10)
    s.another().save("0", 1000)
    s.client.save_or_be_refused("0", 11)
    s.client.list_checkpoints()
    s.client.save("0", 0)
    assert s.another().position("0") == 0, "after a list, a reader by name could not start at 0"


@check("G3", needs=(BASE,))
def force_goes_back(s: Subject) -> None:
    """`force=True` overwrites any stored checkpoint, also a higher one of another writer."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.another().save("0", 20)
    s.client.save("0", 5, force=True)
    assert s.client.position("0") == 5, "force did not go back"


@check("G3", needs=(BASE,))
def force_creates_the_first_checkpoint(s: Subject) -> None:
    """`force=True` also creates a checkpoint if there is none."""
    s.client.save("0", 5, force=True)
    assert s.client.position("0") == 5, "force did not create a checkpoint"


@check("G3", needs=(BASE,))
def force_clears_the_floor(s: Subject) -> None:
    """After a rewind with `force=True`, the next checkpoints are stored."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.save_or_be_refused("0", 15)
    s.client.save("0", 5, force=True)
    s.client.save("0", 6)
    assert s.client.position("0") == 6, "after force to 5, checkpoint 6 was not stored"


@check("G3")
def the_list_after_a_claim_clears_the_floor(s: Subject) -> None:
    """A client that claims a partition again and then lists may store a lower checkpoint."""
    other = s.another()
    s.client.take_listed("0", "a")
    other.take_listed("0", "b")
    other.save("0", 20)
    s.client.save_or_be_refused("0", 15)
    s.client.take_listed("0", "a")
    s.client.save("0", 3)
    assert s.client.position("0") == 3, "the new claim could not start again below 20"


@check("G3")
def an_owners_later_list_forgives_nothing(s: Subject) -> None:
    """Later lists and renewals do not allow a checkpoint below another writer's."""
    mine = s.client.take_listed("0", "a")
    s.client.save("0", 10)
    s.another().save("0", 20)
    s.client.list_checkpoints()
    s.client.take("0", "a", mine["etag"])
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "the owner's own list let it go back behind another writer"


@check("G3")
def a_claim_that_was_lost_forgives_nothing(s: Subject) -> None:
    """A client that learns from a list that it lost a partition may not go back."""
    s.client.list_checkpoints()
    mine = s.client.take("0", "a")
    other = s.another()
    other.take("0", "b", mine["etag"])
    other.save("0", 20)
    s.client.list_ownership()
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "listing after a lost claim let the previous owner go back"


@check("G3")
def a_claim_no_longer_proposed_forgives_nothing(s: Subject) -> None:
    """A client that no longer renews a partition may not go back after a list."""
    s.client.list_checkpoints()
    kept, left = s.client.claim_ownership(s.client.proposals("01", "a"))
    s.client.take("0", "a", kept["etag"])
    other = s.another()
    other.take("1", "b", left["etag"])
    other.save("1", 20)
    s.client.list_checkpoints()
    s.client.save_or_be_refused("1", 15)
    assert s.client.position("1") == 20, "a partition given up could be set back"


@check("G3", "G8", "P8")
def a_claim_that_was_released_forgives_nothing(s: Subject) -> None:
    """A client that has released a partition may not go back after a list."""
    s.client.list_checkpoints()
    s.client.release(s.client.take("0", "a"))
    other = s.another()
    other.take_listed("0", "b")
    other.save("0", 20)
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "listing after a release let the previous owner go back"


@check("G3", needs=(BASE,))
def a_checkpoint_is_tried_again(s: Subject) -> None:
    """A checkpoint is retried while the backend is unavailable."""
    s.faults().plan(WRITE, UNAVAILABLE)
    s.client.save("0", 7)
    assert s.client.position("0") == 7, "the checkpoint was not stored"


@check("G3", needs=(BASE,))
def a_lost_answer_of_a_checkpoint_is_recognised(s: Subject) -> None:
    """If a checkpoint was stored but its response was lost, the retry recognises it."""
    s.client.take_listed("0", "a")
    faults = s.faults()
    faults.plan(WRITE, ANSWER_LOST)
    s.client.save("0", 10)
    assert s.client.position("0") == 10, "the checkpoint is not stored"
    assert faults.count(WRITE) == 2, f"it took {faults.count(WRITE)} writes, not 2"


@check("G3", needs=(BASE,))
def an_unanswered_own_checkpoint_is_no_bound(s: Subject) -> None:
    """A store's own checkpoint is recognised later, even if its response was lost."""
    s.client.take_listed("0", "a")
    s.client.set(write_timeout=SHORT)
    faults = s.faults()
    faults.plan(WRITE, ANSWER_LOST, times=ALWAYS)
    raising(errors.StoreUnavailableError, s.client.save, "0", 10)
    faults.end()
    s.client.set(write_timeout=10.0)
    s.client.save("0", 5)
    assert s.client.position("0") == 5, "the store treated its own checkpoint as another writer's"


@check("G3", "P11", needs=(BASE,))
def a_stranger_after_a_lost_answer_is_not_overwritten(s: Subject) -> None:
    """After a lost response, the retry keeps a higher checkpoint of another writer."""
    s.client.take_listed("0", "a")
    other = s.another()
    other.list_checkpoints()
    s.faults().plan(WRITE, replace(ANSWER_LOST, meanwhile=partial(other.save, "0", 20)))
    s.client.save_or_be_refused("0", 10)
    assert s.client.position("0") == 20, "the repeated write replaced a newer checkpoint"


@check("G3", needs=(BASE,))
def a_checkpoint_costs_one_request(s: Subject) -> None:
    """Without other writers, each checkpoint after a list costs one request."""
    s.client.take_listed("0", "a")
    faults = s.faults()
    for number in (1, 2, 3):
        s.client.save("0", number)
    assert faults.count(WRITE) == 3, f"3 checkpoints took {faults.count(WRITE)} writes"
    assert faults.count("read_checkpoints") == 0, "storing a checkpoint caused a list"


@check("G3", needs=(BASE,))
def a_stale_checkpoint_costs_no_request(s: Subject) -> None:
    """A checkpoint below a known one of another writer is refused without a request."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.list_checkpoints()
    faults = s.faults()
    s.client.save_or_be_refused("0", 15)
    assert faults.count(WRITE) == 0, "a checkpoint known to be stale was sent"


@check("G3", needs=(BASE,))
def a_checkpoint_always_overtaken_can_be_tried_again(s: Subject) -> None:
    """A checkpoint whose row changes at every attempt raises `StoreUnavailableError`."""
    s.client.take_listed("0", "a")
    other = s.another()
    overtake = partial(other.save, "0", 1, force=True)
    overtake()
    faults = s.faults()
    faults.plan(WRITE, Fault(meanwhile=overtake), times=ALWAYS)
    raising(errors.StoreUnavailableError, s.client.save, "0", 10)
    assert faults.count(WRITE) == 4, f"it was attempted {faults.count(WRITE)} times, not 4"


@check("G3", needs=(BASE,))
def checkpoints_of_a_partition_are_written_in_turn(s: Subject) -> None:
    """Checkpoints of one partition are written in turn, those of several concurrently."""
    faults = s.faults()
    s.client.set(write_timeout=3 * DELAY_LIMIT)
    all_run = Fault(until=lambda: faults.peak(WRITE) >= 3, seconds=0.1)
    faults.plan(WRITE, all_run, times=ALWAYS)
    rows = [s.client.checkpoint(each, 1, "1001") for each in ("0", "0", "1", "2")]
    results = s.at_once(*(partial(s.client.store.update_checkpoint, row) for row in rows))
    assert results == [None] * 4, f"of four checkpoints at once, the results are {results}"
    assert faults.peak(WRITE, "0") == 1, (
        "two checkpoints of one partition were written concurrently"
    )
    assert faults.peak(WRITE) == 3, "partitions waited for each other"


@check("G3", "P4", needs=(BASE,))
def a_list_that_a_write_overtook_teaches_nothing(s: Subject) -> None:
    """A list that was read before a concurrent write of the same store is ignored."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    meanwhile = Fault(meanwhile=partial(s.client.save, "0", 11))
    s.faults().plan("read_checkpoints", meanwhile)
    s.client.list_checkpoints()
    s.client.save("0", 5)
    assert s.client.position("0") == 5, "an own checkpoint in an old list became a bound"


@check("G3", "P4", needs=(BASE,))
def a_list_begun_before_the_claim_forgives_nothing(s: Subject) -> None:
    """Only a list that began after the claim allows the new owner to go back."""
    s.client.take_listed("0", "a")
    other = s.another()
    other.take_listed("0", "b")
    other.save("0", 20)
    row = s.client.row("0") or {}
    take_back = partial(s.client.take, "0", "a", row.get("etag"))
    s.faults().plan("read_checkpoints", Fault(meanwhile=take_back))
    s.client.list_checkpoints()
    s.client.save_or_be_refused("0", 15)
    assert s.client.position("0") == 20, "a list from before the claim let it go back"


def stale(s: Subject) -> Client:
    """Return a store object that knows another writer's checkpoint 20 of partition 0."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.list_checkpoints()
    return s.client


@check("G3", needs=(BASE,))
def a_stale_checkpoint_raises_where_asked(s: Subject) -> None:
    """With `on_stale="raise"`, a refused checkpoint raises an error with both positions."""
    client = stale(s)
    client.set(on_stale="raise")
    error = raising(errors.StaleCheckpointError, client.save, "0", 15)
    names = (error.partition_id, error.sequence_number, error.newest)
    assert names == ("0", 15, 20), f"15 behind 20 of partition 0 was reported as {names}"


@check("G3", "P10", needs=(BASE,))
def a_stale_checkpoint_is_counted(s: Subject) -> None:
    """By default, a refused checkpoint is counted and raises no error."""
    client = stale(s)
    before = client.store.counters["stale_checkpoints"]
    client.save("0", 15)
    count = client.store.counters["stale_checkpoints"] - before
    assert count == 1, f"one refused checkpoint was counted as {count}"


@check("G3", needs=(BASE,))
def a_refused_checkpoint_raises(s: Subject) -> None:
    """A checkpoint that the backend refuses raises `StoreAccessError` without a retry."""
    faults = s.faults()
    faults.plan(WRITE, REFUSED, times=ALWAYS)
    raising(errors.StoreAccessError, s.client.save, "0", 7)
    assert faults.count(WRITE) == 1, "a write that was refused was retried"


@check("G3", needs=(BASE,))
def an_unknown_checkpoint_raises(s: Subject) -> None:
    """A checkpoint with an unknown outcome raises `StoreUnavailableError`."""
    s.client.set(write_timeout=SHORT)
    s.faults().plan(WRITE, UNAVAILABLE, times=ALWAYS)
    raising(errors.StoreUnavailableError, s.client.save, "0", 7)


@check("G9", "G7", needs=(BASE,))
def an_unusable_checkpoint_names_its_field(s: Subject) -> None:
    """An invalid checkpoint raises an error that names the field and the value."""
    good = s.client.checkpoint("0", 7, "4711")
    bad: list[tuple[str, Any]] = [("sequence_number", each) for each in (None, "abc", 2**63, 1.5)]
    bad += [("partition_id", ""), ("partition_id", "1/2"), ("consumer_group", "a\nb")]
    for field, value in bad:
        error = raising(
            errors.InvalidRecordError, s.client.update_checkpoint, {**good, field: value}
        )
        names = (error.field, error.value)
        assert names == (field, value), f"the error for {field}={value!r} names {names}"
    assert s.client.list_checkpoints() == [], "one of them was stored"
