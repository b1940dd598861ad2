"""State of a partition by the movement of its checkpoints, as Burrow evaluates it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.states import Sample, State, state_of, states, worst
from eventhub_checkpoints.records import Scope

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class Seen(NamedTuple):
    """A sample: seconds, newest event, checkpoint, and when the checkpoint was stored."""

    time: float
    last: int
    checkpoint: int | None
    written: float | None


def sample(seen: Seen, *, owner: str = "me", begin: int = 0) -> Sample:
    lag = None if seen.checkpoint is None else max(0, seen.last - seen.checkpoint)
    lost = 0 if seen.checkpoint is None else max(0, begin - 1 - seen.checkpoint)
    position = PartitionLag("0", begin, seen.last, seen.checkpoint, "", lag, lost, None, owner, 1.0)
    return Sample(seen.time, position, seen.written)


def each_minute(*pairs: tuple[int, int], written: bool = True) -> list[Sample]:
    """A sample each minute: newest event and checkpoint, which was stored at that time."""
    return [
        sample(Seen(60.0 * at, last, number, 60.0 * at if written else None))
        for at, (last, number) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("pairs", "state"),
    [
        ([(10, 10), (20, 15), (30, 30)], State.OK),  # no lag now
        ([(10, 5), (20, 16), (30, 24)], State.OK),  # the lag fell once
        ([(10, 5), (20, 12), (30, 19)], State.WARN),  # it only grew
        ([(10, 5), (20, 15), (30, 25)], State.WARN),  # it never fell
        ([(10, 9), (20, 19), (30, 29)], State.WARN),  # nor did that of one event
        ([(10, 0), (20, 1), (31, 1)], State.WARN),  # the first event is one as well
        ([(10, 10), (20, 15), (30, 19)], State.OK),  # there was none within the window
        ([(10, 5), (20, 5), (30, 5)], State.STALL),  # stored again and again, at the same event
        ([(10, 5), (20, 15), (30, 9)], State.REWIND),
        ([(10, 9), (20, 5), (35, 20)], State.WARN),  # went back and came again
        ([(10, 9), (20, 5), (30, 28)], State.OK),
    ],
)
def test_the_movement_of_checkpoints_decides(pairs, state) -> None:
    assert state_of(each_minute(*pairs)) is state


def test_checkpoints_that_end_are_a_stop() -> None:
    window = [
        sample(Seen(1000.0, 10, 5, 1000.0)),
        sample(Seen(1060.0, 20, 15, 1060.0)),
        sample(Seen(1120.0, 30, 15, 1060.0)),
    ]
    assert state_of(window) is State.WARN  # as long as the window of checkpoints was
    assert state_of([*window, sample(Seen(1180.0, 40, 15, 1060.0))]) is State.STOP


def test_checkpoints_that_ended_before_the_window_are_a_stop() -> None:
    writes = ((0.0, 10, 5, -600.0), (60.0, 20, 6, -300.0), (120.0, 30, 6, -300.0))
    assert state_of([sample(Seen(*write)) for write in writes]) is State.STOP


def test_a_checkpoint_without_a_number_is_no_sign_of_a_lag_that_grows() -> None:
    seen = (Seen(0.0, 10, 9, 0.0), Seen(60.0, 20, None, 60.0), Seen(120.0, 30, 28, 120.0))
    assert state_of([sample(each) for each in seen]) is State.OK


def test_a_partition_whose_first_event_has_just_come_has_not_stopped() -> None:
    window = [
        sample(Seen(0.0, 15, 15, -900.0)),
        sample(Seen(60.0, 15, 15, -900.0)),
        sample(Seen(120.0, 16, 15, -900.0)),
    ]
    assert state_of(window) is State.OK


def test_without_times_of_writes_a_checkpoint_that_stays_is_a_stop() -> None:
    assert state_of(each_minute((10, 5), (20, 5), (30, 5), written=False)) is State.STOP


def test_what_one_sample_shows_needs_no_window() -> None:
    assert state_of([sample(Seen(0.0, 30, 99, 0.0))]) is State.GONE
    assert state_of([sample(Seen(0.0, 30, 5, 0.0), begin=20)]) is State.LOST
    assert state_of([sample(Seen(0.0, 30, 30, 0.0), owner="")]) is State.UNOWNED


def test_a_moved_partition_is_as_expected_and_leaves_the_state_to_the_others() -> None:
    moved = PartitionLag("0", 0, 9, None, "", 0, 0, 30.0, "", 1.0, is_moved=True)
    assert state_of([Sample(60.0, moved, 30.0)]) is State.MOVED
    assert (State.MOVED.severity, worst([State.MOVED, State.MOVED])) == (0, State.MOVED)
    assert [worst([State.MOVED, each]) for each in State if each is not State.MOVED] == [
        each for each in State if each is not State.MOVED
    ]


def test_too_little_is_unknown_and_never_ok() -> None:
    assert state_of([]) is State.UNKNOWN
    assert state_of(each_minute((10, 10), (10, 10))) is State.UNKNOWN
    assert state_of(each_minute((10, 10), (10, 10)), fewest=2) is State.OK
    assert state_of([sample(Seen(60.0 * at, 30, None, None)) for at in range(5)]) is State.UNKNOWN


def test_a_sample_knows_when_its_checkpoint_was_stored() -> None:
    position = PartitionLag("0", 0, 9, 5, "", 4, 0, 30.0, "me", 1.0)
    assert Sample.of(position, 100.0) == Sample(100.0, position, 70.0)
    unknown = replace(position, checkpoint_age=None)
    assert Sample.of(unknown, 100.0) == Sample(100.0, unknown, None)


def test_each_partition_of_the_newest_sample_has_a_state() -> None:
    def group(number: int) -> GroupLag:
        ids = [str(id_) for id_ in range(number + 1)]
        rows = [PartitionLag(id_, 0, 9, 9, "", 0, 0, 0.0, "me", 1.0) for id_ in ids]
        return GroupLag(SCOPE, 60.0 * number, rows, [])

    window = [group(number) for number in range(4)]
    ok, unknown = State.OK, State.UNKNOWN
    assert states(window) == {"0": ok, "1": ok, "2": unknown, "3": unknown}
    assert states(window, fewest=2) == {"0": ok, "1": ok, "2": ok, "3": unknown}
    assert states([]) == {}


def test_the_state_of_a_group_is_its_worst() -> None:
    assert worst([State.OK, State.WARN]) is State.WARN
    assert worst([State.UNKNOWN, State.UNOWNED]) is State.UNKNOWN
    assert worst([State.UNKNOWN, State.STOP, State.OK]) is State.STOP
    assert worst([State.OK]) is State.OK
    assert worst([]) is State.UNKNOWN
    assert [state.severity for state in (State.OK, State.WARN, State.GONE, State.UNKNOWN)] == [
        *range(4)
    ]
    worse_and_worse = [State.MOVED, State.OK, State.WARN, State.UNOWNED, State.UNKNOWN]
    worse_and_worse += [State.REWIND, State.STALL, State.STOP, State.LOST, State.GONE]
    assert [worst(worse_and_worse[: place + 1]) for place in range(10)] == worse_and_worse
    assert [worst(worse_and_worse[place::-1]) for place in range(10)] == worse_and_worse


def test_the_page_on_lag_lists_the_states_with_their_meanings() -> None:
    page = Path(__file__).parents[2] / "docs/how-to/monitor-lag.md"
    rows = re.findall(r"^\| `([A-Z]+)` \| (\d) \| (.*) \|$", page.read_text(), re.MULTILINE)
    without_links = [
        (state, int(severity), re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", meaning))
        for state, severity, meaning in rows
    ]
    assert without_links == [(state, state.severity, state.meaning) for state in State]
