"""Lanes, blocks and rates of a group."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag
from eventhub_checkpoints.operations.monitor import Status
from eventhub_checkpoints.operations.states import State
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.ui.board import BLOCK, Board, Flow, Lane, Order, blocks, board
from eventhub_checkpoints.ui.observations import Observations
from eventhub_checkpoints.ui.owners import BAR, Badge, Palette

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
POSITION = PartitionLag("0", 0, 99, 49, "49", 50, 0, 1.0, "me", 1.0)


def lane(moved: int | None = None, reach: int = 100, **values: object) -> Lane:
    position = replace(POSITION, **values)  # type: ignore[arg-type]
    return Lane(position, State.OK, moved, Badge(0), [], reach)


def test_a_lane_ends_at_the_newest_event_and_begins_at_the_checkpoint() -> None:
    drawn = lane(moved=20)
    assert (drawn.at, drawn.lag_width, drawn.trail_width) == (500, 500, 200)
    assert (drawn.back_width, drawn.lost_width) == (0, 0)


def test_a_rewind_is_drawn_over_the_lag() -> None:
    drawn = lane(moved=-30)
    assert (drawn.trail_width, drawn.back_width) == (0, 300)
    assert lane(moved=-300).back_width == 500


@pytest.mark.parametrize(("lag", "width"), [(0, 0), (None, 0), (1, 4), (200, BAR)])
def test_a_lag_is_visible_and_within_the_lane(lag: int | None, width: float) -> None:
    assert lane(lag=lag, reach=100 if lag == 200 else 10_000).lag_width == width


def test_lost_events_are_marked_before_the_checkpoint_or_at_the_beginning() -> None:
    assert (lane(lost=3).lost_width, lane(lost=3).lost_at) == (30, 470)
    assert (lane(lost=10**9, lag=100).lost_width, lane(lost=10**9, lag=100).lost_at) == (40, 0)


def sample(time: float, *positions: PartitionLag) -> GroupLag:
    return GroupLag(SCOPE, time, positions, [])


def of(samples: Sequence[GroupLag], palette: Palette | None = None) -> Board:
    return board(Status(SCOPE, samples, ""), Observations(), palette or Palette())


def test_rates_are_those_of_the_last_samples() -> None:
    first = replace(POSITION, last=59, checkpoint=29, lag=30)
    other = replace(POSITION, partition_id="1")
    made = of([sample(100.0, first, other), sample(110.0, POSITION, replace(other, checkpoint=9))])
    assert made.flow == Flow(4.0, 2.0)
    assert [each.moved for each in made.lanes] == [20, -40]
    assert made.lanes[0].reach == 70
    assert made.seconds == 10.0


def test_a_partition_that_is_new_has_not_moved() -> None:
    made = of([sample(100.0), sample(110.0, POSITION)])
    assert made.lanes[0].moved is None
    assert list(made.lanes[0].lags) == [None, 50]


def test_one_sample_has_no_rate() -> None:
    assert of([sample(100.0, POSITION)]).flow == Flow(None, None)
    assert of([]).flow == Flow(None, None)


@pytest.mark.parametrize(
    ("flow", "lag", "seconds"),
    [
        (Flow(1.0, 3.0), 10, 5.0),
        (Flow(3.0, 1.0), 10, None),
        (Flow(1.0, 3.0), 0, None),
        (Flow(1.0, 3.0), None, None),
        (Flow(None, None), 10, None),
    ],
)
def test_a_lag_that_falls_has_an_end(flow: Flow, lag: int | None, seconds: float | None) -> None:
    assert flow.seconds_left(lag) == seconds


def many(count: int) -> list[Lane]:
    return [lane(partition_id=str(number), lag=number) for number in range(count)]


def test_a_group_that_fits_has_no_blocks() -> None:
    assert blocks(many(BLOCK)) == []
    assert blocks([]) == []


def test_blocks_have_their_ends_lag_and_worst_state() -> None:
    lanes = many(2 * BLOCK + 1)
    lanes[BLOCK] = replace(lanes[BLOCK], state=State.LOST)
    lanes[1] = replace(lanes[1], position=replace(lanes[1].position, lag=None))
    first, second, third = blocks(lanes)
    assert (first.first, first.last, first.partitions, first.lag) == ("0", "49", BLOCK, None)
    assert (second.first, second.last, second.lag) == ("50", "99", sum(range(50, 100)))
    assert (third.number, third.first, third.last, third.state) == (3, "100", "100", State.OK)
    assert second.state is State.LOST
    assert set(second.charts) == {"good", "bad"}
    assert second.charts["bad"] == "M1 40v-20.0"
    assert third.charts["good"] == "M1 40v-40.0"
    assert second.charts["good"].count("M") == BLOCK - 1


def test_lanes_of_one_owner_are_chosen() -> None:
    made = of([sample(1.0, POSITION, replace(POSITION, partition_id="1", owner_id=""))])
    assert [each.position.partition_id for each in made.arranged(Order.NUMBER)] == ["0", "1"]
    for owner, id_ in (("me", "0"), ("", "1")):
        chosen = made.arranged(Order.NUMBER, owner_id=owner)
        assert [each.position.partition_id for each in chosen] == [id_]


def test_owners_keep_their_badges_between_two_polls() -> None:
    palette = Palette()
    later = replace(POSITION, partition_id="1", owner_id="a")
    assert of([sample(1.0, POSITION)], palette).lanes[0].badge == Badge(0)
    made = of([sample(1.0, later, POSITION)], palette)
    assert [each.badge for each in made.lanes] == [Badge(1), Badge(0)]
    assert made.attention == 2


def test_a_group_says_why_it_is_unknown_or_what_its_worst_partition_means() -> None:
    window = [sample(1.0, POSITION, replace(POSITION, partition_id="1", lost=3))]
    assert of(window).meaning == "Worst partition: Events expired before they were processed."
    failed = board(Status(SCOPE, window, "the hub is gone"), Observations(), Palette())
    assert (failed.state, failed.meaning) == (State.UNKNOWN, "the hub is gone")


def test_the_states_of_a_group_begin_with_the_worst() -> None:
    made = of([sample(1.0, POSITION, replace(POSITION, partition_id="1", lost=3, owner_id=""))])
    assert made.states == [State.LOST, State.UNKNOWN]
