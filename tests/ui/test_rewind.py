"""Plan of a rewind as a drawing."""

from dataclasses import replace

import pytest

from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.operations.reset import PartitionReset
from eventhub_checkpoints.ui.rewind import LEAST, LINE, move_of, moves_of

PLAN = PartitionReset("0", 100, 199, Position(149, "149"), 150, 120, Position(119, "119"))


@pytest.mark.parametrize(
    ("old", "new", "begin", "width"),
    [
        (150, 120, 200, 300),
        (120, 150, 200, 300),
        (150, 150, 500, 0),
        (150, 100, 0, 500),
        (150, 200, 500, 500),
        (150, 151, 500, 10),
        (None, 150, 500, 0),
    ],
)
def test_the_line_stands_for_the_retained_events(
    old: int | None, new: int, begin: float, width: float
) -> None:
    move = move_of(replace(PLAN, old=old, new=new))
    assert (move.begin, move.width) == (begin, width)


def test_a_small_change_can_be_seen() -> None:
    move = move_of(replace(PLAN, begin=0, last=10**6 - 1, old=999_999, new=10**6))
    assert (move.begin, move.width) == (LINE - LEAST, LEAST)


def test_an_empty_partition_has_its_place_at_the_end() -> None:
    move = move_of(replace(PLAN, begin=200, old=200, new=200))
    assert (move.now, move.then, move.width) == (LINE, LINE, 0)


def test_the_largest_changes_come_first() -> None:
    news = {"0": 140, "1": 100, "2": 199}
    plan = [replace(PLAN, partition_id=id_, new=new) for id_, new in news.items()]
    assert [move.plan.partition_id for move in moves_of(plan)] == ["1", "2", "0"]
