"""Owners as pages show them."""

from dataclasses import replace

import pytest

from eventhub_checkpoints.operations.lag import PartitionLag
from eventhub_checkpoints.ui.observations import Holding
from eventhub_checkpoints.ui.owners import BAR, COLOURS, Palette, ranges, shares, short

POSITION = PartitionLag("0", 0, 19, 9, "9", 10, 0, 1.0, "me", 1.0)


@pytest.mark.parametrize(
    ("owner_id", "name"),
    [
        ("21636369-8b52-9b4a-97b7-50923ceb3ffd", "21636369"),
        ("216363698b529b4a97b750923ceb3ffd", "21636369"),
        ("consumer-7", "consumer-7"),
        ("a-name-of-20-letters", "a-name-of-20-letters"),
        ("a-name-of-21-letters!", "a-name-of-21-l…ers!"),
        ("a\u202eb", r"a\u202eb"),
    ],
)
def test_long_ids_are_cut(owner_id: str, name: str) -> None:
    assert short(owner_id) == name


def test_an_owner_keeps_its_colour_and_frees_it() -> None:
    palette = Palette()
    assert palette.assign(["b", "a"]) == {"a": 0, "b": 1}
    assert palette.assign(["c", "b"]) == {"b": 1, "c": 0}
    assert palette.assign(["a", "b", "c"]) == {"b": 1, "c": 0, "a": 2}


def test_more_owners_than_colours_share_them_evenly() -> None:
    colours = Palette().assign(str(number) for number in range(2 * COLOURS))
    assert sorted(colours.values()) == sorted([*range(COLOURS)] * 2)


def position(id_: int, owner: str, lag: int | None = 10, age: float = 1.0) -> PartitionLag:
    return replace(POSITION, partition_id=str(id_), owner_id=owner, lag=lag, ownership_age=age)


def test_shares_are_ordered_and_add_up() -> None:
    positions = [
        position(0, "small"),
        position(10, "large", age=3.0),
        position(2, "large", age=2.0),
        position(3, "", age=9.0),
    ]
    holdings = {"10": Holding("large", 50.0, True), "2": Holding("large", 70.0, False)}
    large, small, nobody = shares(positions, {"large": 0, "small": 1}, holdings)
    assert (large.owner_id, large.partition_ids, large.lag) == ("large", ["2", "10"], 20)
    assert (large.since, large.is_older, large.renewed) == (50.0, True, 2.0)
    assert (small.since, small.renewed, small.colour) == (None, 1.0, 1)
    assert (nobody.name, nobody.colour) == ("nobody", None)
    assert (nobody.since, nobody.renewed) == (None, None)
    assert [share.x for share in (large, small, nobody)] == [0, BAR / 2, 3 * BAR / 4]
    assert nobody.x + nobody.width == BAR


def test_an_unknown_lag_makes_that_of_its_owner_unknown() -> None:
    [share] = shares([position(0, "me"), position(1, "me", None)], {"me": 0}, {})
    assert share.lag is None


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        (["0"], "0"),
        (["0", "1"], "0, 1"),
        (["0", "1", "2", "5", "7", "8", "9", "10"], "0-2, 5, 7-10"),
        (["1", "x", "y"], "1, x, y"),
    ],
)
def test_runs_of_partitions_are_contracted(ids: list[str], text: str) -> None:
    assert ranges(ids) == text
