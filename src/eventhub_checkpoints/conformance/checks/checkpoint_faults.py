"""Checks of checkpoints on a faulty backend: their cost, and the report of refused ones."""

from dataclasses import replace
from functools import partial
from typing import Any

from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import BASE, check
from eventhub_checkpoints.conformance.faults import ALWAYS, ANSWER_LOST, REFUSED, UNAVAILABLE, Fault
from eventhub_checkpoints.conformance.harness import Subject, race, raising
from eventhub_checkpoints.errors import (
    InvalidRecordError,
    StaleCheckpointError,
    StoreAccessError,
    StoreUnavailableError,
)

SHORT = 0.3
"""Timeout of a write in these checks, in seconds."""
WRITE = "write_checkpoint"


@check("G3", needs=(BASE,))
def a_checkpoint_is_tried_again(s: Subject) -> None:
    """A checkpoint that found the backend away is tried again."""
    s.faults().plan(WRITE, UNAVAILABLE)
    s.client.save("0", 7)
    assert s.client.position("0") == 7, "the checkpoint was not stored"


@check("G3", needs=(BASE,))
def a_lost_answer_of_a_checkpoint_is_recognised(s: Subject) -> None:
    """A checkpoint that was stored while its answer was lost is recognised by its next try."""
    s.client.take_listed("0", "a")
    faults = s.faults()
    faults.plan(WRITE, ANSWER_LOST)
    s.client.save("0", 10)
    assert s.client.position("0") == 10, "the checkpoint is not stored"
    assert faults.count(WRITE) == 2, f"it took {faults.count(WRITE)} writes, not 2"


@check("G3", needs=(BASE,))
def an_unanswered_own_checkpoint_is_no_bound(s: Subject) -> None:
    """An own checkpoint whose answer never came is no bound, once it is seen."""
    s.client.take_listed("0", "a")
    s.client.set(write_timeout=SHORT)
    faults = s.faults()
    faults.plan(WRITE, ANSWER_LOST, times=ALWAYS)
    raising(StoreUnavailableError, s.client.save, "0", 10)
    faults.end()
    s.client.set(write_timeout=10.0)
    s.client.save("0", 5)
    assert s.client.position("0") == 5, "the store took its own checkpoint for a stranger's"


@check("G3", "P11", needs=(BASE,))
def a_stranger_after_a_lost_answer_is_not_overwritten(s: Subject) -> None:
    """After a lost answer, a newer checkpoint that another writer stored meanwhile stays."""
    s.client.take_listed("0", "a")
    other = s.another()
    other.list_checkpoints()
    s.faults().plan(WRITE, replace(ANSWER_LOST, meanwhile=partial(other.save, "0", 20)))
    s.client.save_or_be_refused("0", 10)
    assert s.client.position("0") == 20, "the repeated write replaced a newer checkpoint"


@check("G3", needs=(BASE,))
def a_checkpoint_costs_one_request(s: Subject) -> None:
    """Where nobody else writes, each checkpoint after a list is one request."""
    s.client.take_listed("0", "a")
    faults = s.faults()
    for number in (1, 2, 3):
        s.client.save("0", number)
    assert faults.count(WRITE) == 3, f"3 checkpoints took {faults.count(WRITE)} writes"
    assert faults.count("read_checkpoints") == 0, "storing a checkpoint asked for a list"


@check("G3", needs=(BASE,))
def a_stale_checkpoint_costs_no_request(s: Subject) -> None:
    """A checkpoint below what another writer is known to have stored is refused unasked."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.list_checkpoints()
    faults = s.faults()
    s.client.save_or_be_refused("0", 15)
    assert faults.count(WRITE) == 0, "a checkpoint known to be stale was sent"


@check("G3", needs=(BASE,))
def a_checkpoint_always_overtaken_can_be_tried_again(s: Subject) -> None:
    """A checkpoint whose row changes at every try fails as unavailable, not as stale."""
    s.client.take_listed("0", "a")
    other = s.another()
    overtake = partial(other.save, "0", 1, force=True)
    overtake()
    faults = s.faults()
    faults.plan(WRITE, Fault(meanwhile=overtake), times=ALWAYS)
    raising(StoreUnavailableError, s.client.save, "0", 10)
    assert faults.count(WRITE) == 4, f"it was tried {faults.count(WRITE)} times, not 4"


@check("G3", needs=(BASE,))
def checkpoints_of_a_partition_are_written_in_turn(s: Subject) -> None:
    """Of one partition one checkpoint is written at a time, of several partitions several."""
    faults = s.faults()
    faults.plan(WRITE, Fault(seconds=0.1), times=ALWAYS)
    writes = [("0", 1), ("0", 1), ("1", 1), ("2", 1)]
    race([partial(s.client.save, *write) for write in writes])
    assert faults.peak(WRITE, "0") == 1, "two checkpoints of one partition were under way"
    assert faults.peak(WRITE) >= 2, "partitions waited for one another"


@check("G3", "P4", needs=(BASE,))
def a_list_that_a_write_overtook_teaches_nothing(s: Subject) -> None:
    """A list that shows what was stored before an own write does not become a bound."""
    s.client.take_listed("0", "a")
    s.client.save("0", 10)
    meanwhile = Fault(meanwhile=partial(s.client.save, "0", 11))
    s.faults().plan("read_checkpoints", meanwhile)
    s.client.list_checkpoints()
    s.client.save("0", 5)
    assert s.client.position("0") == 5, "an own checkpoint in an old list became a bound"


@check("G3", "P4", needs=(BASE,))
def a_list_begun_before_the_claim_forgives_nothing(s: Subject) -> None:
    """The list that gives a claim its new start is one that began after the claim."""
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
    """A store object that knows of a stranger's checkpoint 20 of partition 0."""
    s.client.take_listed("0", "a")
    s.another().save("0", 20)
    s.client.list_checkpoints()
    return s.client


@check("G3", needs=(BASE,))
def a_stale_checkpoint_raises_where_asked(s: Subject) -> None:
    """With `on_stale="raise"` a refused checkpoint raises what was refused, and why."""
    client = stale(s)
    client.set(on_stale="raise")
    error = raising(StaleCheckpointError, client.save, "0", 15)
    said = (error.partition_id, error.sequence_number, error.newest)
    assert said == ("0", 15, 20), f"15 behind 20 of partition 0 was refused as {said}"


@check("G3", "P10", needs=(BASE,))
def a_stale_checkpoint_is_counted(s: Subject) -> None:
    """By default a refused checkpoint raises nothing, and is counted."""
    client = stale(s)
    before = client.store.counters["stale_checkpoints"]
    client.save("0", 15)
    count = client.store.counters["stale_checkpoints"] - before
    assert count == 1, f"one refused checkpoint was counted as {count}"


@check("G3", needs=(BASE,))
def a_refused_checkpoint_raises(s: Subject) -> None:
    """A checkpoint that the backend refused raises `StoreAccessError` at once."""
    faults = s.faults()
    faults.plan(WRITE, REFUSED, times=ALWAYS)
    raising(StoreAccessError, s.client.save, "0", 7)
    assert faults.count(WRITE) == 1, "a write that was refused was tried again"


@check("G3", needs=(BASE,))
def an_unknown_checkpoint_raises(s: Subject) -> None:
    """A checkpoint whose outcome stays unknown raises `StoreUnavailableError`."""
    s.client.set(write_timeout=SHORT)
    s.faults().plan(WRITE, UNAVAILABLE, times=ALWAYS)
    raising(StoreUnavailableError, s.client.save, "0", 7)


@check("G9", "G7", needs=(BASE,))
def an_unusable_checkpoint_names_its_field(s: Subject) -> None:
    """A checkpoint that nobody could read back raises an error that names field and value."""
    good = s.client.checkpoint("0", 7, "4711")
    bad: list[tuple[str, Any]] = [("sequence_number", one) for one in (None, "abc", 2**63, 1.5)]
    bad += [("partition_id", ""), ("partition_id", "1/2"), ("consumer_group", "a\nb")]
    for field, value in bad:
        error = raising(InvalidRecordError, s.client.update_checkpoint, {**good, field: value})
        said = (error.field, error.value)
        assert said == (field, value), f"the error for {field}={value!r} names {said}"
    assert s.client.list_checkpoints() == [], "one of them was stored"
