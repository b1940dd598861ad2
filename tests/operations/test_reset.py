"""Plans of a reset: pure rules, and what they guarantee for any partition and target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.operations.lag import partition_lag
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.reset import (
    Shift,
    old_next,
    plan_partition,
)
from eventhub_checkpoints.receive import PartitionProperties


def properties(begin: int, end: int, offset: str = "last") -> PartitionProperties:
    return PartitionProperties("0", begin, end, offset, None)


NUMBERS = st.integers(-1, 60)
BEFORE = st.none() | st.builds(Position, NUMBERS, st.just("before"))
TARGETS = (
    st.sampled_from(["earliest", "latest", "current"])
    | st.integers(0, 60)
    | st.builds(Shift, st.integers(-60, 60))
    | st.builds(lambda number: {"0": number}, st.integers(0, 60))
)


@given(
    st.integers(0, 40), st.integers(0, 20), BEFORE, TARGETS, st.sampled_from(["earliest", "latest"])
)
def test_a_plan_stays_within_the_events_and_counts_what_it_says(
    begin, count, before, target, missing
) -> None:
    if before is None and isinstance(target, Shift):
        with pytest.raises(ConfigurationError):
            plan_partition(target, properties(begin, begin + count), before, missing)
        return
    plan = plan_partition(target, properties(begin, begin + count), before, missing)
    assert begin <= plan.new <= begin + count
    assert plan.after.sequence_number == plan.new - 1
    # The offset is known, or is that of an event that is retained.
    assert plan.needs_offset == (begin < plan.new < begin + count)
    assert plan.needs_offset or plan.after.offset in ("-1", "last")
    assert plan.old == old_next(before, plan.begin, plan.last, missing)
    assert plan.read_again - plan.skipped == plan.old - plan.new
    assert 0 in (plan.read_again, plan.skipped)
    # What is stored has the lag that the plan promises.
    row = {"sequence_number": plan.after.sequence_number, "offset": plan.after.offset}
    found = partition_lag(properties(begin, begin + count), row, None, 0.0)
    assert (found.lag, found.lost, found.is_gone) == (begin + count - plan.new, 0, False)
    # A plan that is carried out is finished.
    again = plan_partition(plan.new, properties(begin, begin + count), plan.after, missing)
    assert again.new == plan.new
    assert (again.read_again, again.skipped) == (0, 0)


@given(st.integers(0, 40), st.integers(0, 20), BEFORE)
def test_earliest_skips_nothing_and_latest_reads_nothing_again(begin, count, before) -> None:
    earliest = plan_partition("earliest", properties(begin, begin + count), before)
    assert (earliest.skipped, earliest.after) == (0, Position(begin - 1, "-1"))
    latest = plan_partition("latest", properties(begin, begin + count), before)
    assert (latest.read_again, latest.after) == (0, Position(begin + count - 1, "last"))


@pytest.mark.parametrize("offset", ["-1", ""])
def test_a_partition_that_was_never_used_has_a_position(offset: str) -> None:
    for target in ("earliest", "latest", "current", 0, 5):
        plan = plan_partition(target, properties(0, 0, offset), None)
        assert plan.after == Position(-1, "-1")


def test_a_position_that_holds_an_offset_only_can_be_reset_but_not_shifted() -> None:
    before = Position(None, "640")
    plan = plan_partition("latest", properties(0, 10), before)
    assert (plan.old, plan.read_again, plan.skipped) == (None, None, None)
    for target in (Shift(1), "current"):
        with pytest.raises(ConfigurationError, match="without a sequence number"):
            plan_partition(target, properties(0, 10), before)


def test_a_limit_is_noted() -> None:
    assert "below the first" in plan_partition(3, properties(5, 10), None).note
    assert "above the last" in plan_partition(11, properties(5, 10), None).note
    assert plan_partition(10, properties(5, 10), None).note == ""
    assert "no checkpoint" in plan_partition("current", properties(5, 10), None).note


def test_an_event_that_was_compacted_has_no_offset() -> None:
    plan = plan_partition(7, properties(5, 10), None)
    assert plan.with_offset("640").note == ""
    without = plan.with_offset("")
    assert (without.after, without.needs_offset) == (Position(6, ""), False)
    assert without.note == "event 6 does not exist: no offset"
