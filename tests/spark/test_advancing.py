from datetime import UTC, datetime

import pytest

from eventhub_checkpoints.receive import HubAddress, PartitionProperties
from eventhub_checkpoints.receive.address import HubState
from eventhub_checkpoints.spark.offsets import StreamOffset
from eventhub_checkpoints.spark.source.batches import (
    losses,
    next_offset,
    partition_starts,
    waiting_events,
)
from eventhub_checkpoints.spark.source.options import NO_LIMITS, Limits

ADDRESS = HubAddress("ns", "orders", "$Default", "secret")
NEWEST = datetime(2026, 11, 21, 10, tzinfo=UTC)


def held(created="", **by_partition):
    """First and next number of each partition."""
    partitions = {
        partition.removeprefix("p"): PartitionProperties(partition[1:], *numbers, "", NEWEST)
        for partition, numbers in by_partition.items()
    }
    return HubState(created, partitions)


def at(lost=None, initial=False, created="", begins=None, **by_partition):
    numbers = {one.removeprefix("p"): number for one, number in by_partition.items()}
    return StreamOffset("orders", numbers, begins or {}, lost or {}, initial, created=created)


def advance(start, found, limits=NO_LIMITS, ends=None, expired=None):
    starts = partition_starts(ADDRESS, start, found)
    ends = ends or {one: each.next_sequence_number for one, each in found.partitions.items()}
    waiting = waiting_events(starts, ends)
    return next_offset(start, starts, waiting, limits, found.created, expired or {})


def said(start, found):
    starts = partition_starts(ADDRESS, start, found)
    return [str(loss) for loss in losses(ADDRESS, start, found, starts)]


def test_a_batch_ends_where_the_hub_ends():
    found = held(p0=(0, 9), p1=(3, 7))
    assert advance(at(p0=5, p1=7), found) == at(p0=9, p1=7)
    assert said(at(p0=5, p1=7), found) == []


def test_nothing_new_is_the_very_same_offset():
    start = at(p0=9, p1=7, lost={"0": 3})
    assert advance(start, held(p0=(0, 9), p1=(7, 7))) is start


@pytest.mark.parametrize("end", [9, 5])
def test_the_first_batch_says_where_it_begins_even_if_it_is_empty(end):
    first = advance(at(p0=5, initial=True), held(p0=(0, end)))
    assert first == StreamOffset("orders", {"0": end}, {"0": 5})


def test_a_limit_is_counted_from_where_a_partition_begins():
    found = held(p0=(0, 100), p1=(50, 100))
    assert advance(at(p0=90, p1=20), found, Limits(rate=5)).next == {"0": 95, "1": 55}


def test_a_new_partition_begins_at_its_first_event():
    found = held(p0=(0, 9), p1=(2, 6))
    assert advance(at(p0=9), found) == StreamOffset("orders", {"0": 9, "1": 6}, {"1": 2})
    assert said(at(p0=9), found) == []


def test_expired_events_are_counted_and_passed_over():
    found = held(p0=(40, 90))
    after = advance(at(p0=10, lost={"0": 5, "1": 2}), found)
    assert after == StreamOffset("orders", {"0": 90}, {"0": 40}, {"0": 35, "1": 2})
    assert "sequence number 10 has expired; the first retained is 40" in said(at(p0=10), found)[0]


def test_what_expired_before_a_batch_was_run_again_is_told_in_a_batch_of_its_own():
    start = at(p0=9, lost={"0": 3})
    told = advance(start, held(p0=(0, 9)), expired={"0": 40})
    assert (told.next, told.lost) == ({"0": 9}, {"0": 43})
    assert advance(told, held(p0=(0, 9))) is told


def test_a_partition_that_has_expired_whole_goes_on_at_its_end():
    assert advance(at(p0=10), held(p0=(90, 90))).lost == {"0": 80}


def test_a_hub_that_was_created_again_is_read_from_its_first_event():
    found = held(p0=(0, 5))
    assert advance(at(p0=100), found) == StreamOffset("orders", {"0": 5}, {"0": 0})
    assert "Was the hub deleted and created again?" in said(at(p0=100), found)[0]


def test_a_hub_that_is_empty_is_not_taken_for_a_new_one():
    start = at(p0=100)
    assert advance(start, held(p0=(100, 100))) is start
    assert said(start, held(p0=(100, 100))) == []


def test_a_partition_that_is_gone_is_told():
    found = held(p0=(0, 5))
    assert "has no partition 3 any more, it has 0." in said(at(p0=5, p3=7), found)[0]
    assert advance(at(p0=5, p3=7), found) == at(p0=5)


def test_what_comes_behind_the_target_is_left_for_the_next_run():
    found = held(p0=(0, 90), p1=(0, 5))
    after = advance(at(p0=10), found, ends={"0": 50, "1": 0})
    assert after == StreamOffset("orders", {"0": 50, "1": 0}, {"1": 0})
    assert advance(after, found, ends={"0": 50, "1": 0}) is after
    assert advance(at(p0=60, p1=0), found, ends={"0": 50, "1": 0}).next == {"0": 60, "1": 0}


def test_a_hub_that_was_created_again_is_told_although_it_has_grown_past_the_position():
    start, again = at(p0=5, p1=7, created="10:00"), held("11:00", p0=(0, 9), p1=(0, 7))
    assert advance(start, again) == at(p0=9, p1=7, created="11:00", begins={"0": 0, "1": 0})
    [loss] = said(start, again)
    assert "deleted and created again" in loss
    assert "created at 10:00, and the present one was created at 11:00" in loss
    # Even one that is empty, where the one before was empty too.
    assert advance(at(p0=0, created="10:00"), held("11:00", p0=(0, 0))).created == "11:00"


@pytest.mark.parametrize(("before", "now"), [("", "11:00"), ("11:00", ""), ("11:00", "11:00")])
def test_a_hub_is_the_same_if_either_time_of_creation_is_unknown(before, now):
    start, same = at(p0=5, created=before), held(now, p0=(0, 9))
    assert said(start, same) == []
    # A transport that does not report the time does not erase it.
    assert advance(start, same) == at(p0=9, created="11:00")
    idle = at(p0=9, created=before)
    assert advance(idle, same) is idle
