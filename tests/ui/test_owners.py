"""Owners as pages show them."""

import re
from dataclasses import replace
from importlib import resources

import pytest

from eventhub_checkpoints.operations.lag import PartitionLag
from eventhub_checkpoints.ui.observations import Holding
from eventhub_checkpoints.ui.owners import (
    BAR,
    COLOURS,
    TEXTURES,
    Badge,
    Palette,
    ranges,
    shares,
    short,
)

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


def test_an_owner_keeps_its_badge_and_frees_it() -> None:
    palette = Palette()
    assert palette.assign(["b", "a"]) == {"a": Badge(0), "b": Badge(1)}
    assert palette.assign(["c", "b"]) == {"b": Badge(1), "c": Badge(0)}
    assert palette.assign(["a", "b", "c"]) == {"b": Badge(1), "c": Badge(0), "a": Badge(2)}


def test_more_owners_than_colours_share_them_evenly() -> None:
    badges = Palette().assign(str(number) for number in range(2 * COLOURS))
    assert sorted(each.colour for each in badges.values()) == sorted([*range(COLOURS)] * 2)


def test_owners_look_different_and_each_has_its_own_tag() -> None:
    badges = [*Palette().assign(f"{number:03}" for number in range(1_000)).values()]
    looks = {(each.colour, each.texture) for each in badges[: COLOURS * len(TEXTURES)]}
    assert len(looks) == COLOURS * len(TEXTURES)
    assert len({each.tag for each in badges}) == 1_000
    chosen = (0, 1, 25, 26, 51, 52, 701, 702)
    assert [badges[number].tag for number in chosen] == [
        "A",
        "B",
        "Z",
        "AA",
        "AZ",
        "BA",
        "ZZ",
        "AAA",
    ]


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_are_distinct_and_seen_on_every_ground(scheme: int) -> None:
    sheet = resources.files("eventhub_checkpoints.ui").joinpath("static", "style.css").read_text()
    light, dark = sheet.split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(re.findall("--([a-z0-9]+): (#[0-9a-f]{6})", (light, dark)[scheme]))
    owners = [colours[f"c{number}"] for number in range(COLOURS)]
    assert len({*owners, colours["nobody"]}) == COLOURS + 1
    for each in owners:
        # Their tags are written on them, in the colour of the card.
        assert contrast(each, colours["card"]) >= 4.5
        assert contrast(each, colours["raised"]) >= 3
    assert contrast(colours["nobody"], colours["raised"]) >= 3


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours. Source: WCAG 2.2, "contrast ratio"."""
    darker, lighter = sorted(map(luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance. Source: WCAG 2.2, "relative luminance"."""
    parts = [value / 255 for value in bytes.fromhex(colour[1:])]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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
    large, small, nobody = shares(positions, {"large": Badge(0), "small": Badge(1)}, holdings)
    assert (large.owner_id, large.partition_ids, large.lag) == ("large", ["2", "10"], 20)
    assert (large.since, large.is_older, large.renewed) == (50.0, True, 2.0)
    assert (small.since, small.renewed, small.badge) == (None, 1.0, Badge(1))
    assert (nobody.name, nobody.badge) == ("nobody", None)
    assert (nobody.since, nobody.renewed) == (None, None)
    assert [share.x for share in (large, small, nobody)] == [0, BAR / 2, 3 * BAR / 4]
    assert nobody.x + nobody.width == BAR


def test_an_unknown_lag_makes_that_of_its_owner_unknown() -> None:
    [share] = shares([position(0, "me"), position(1, "me", None)], {"me": Badge(0)}, {})
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
