"""Durations in every spelling that options, configuration files and the command line have."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints._shared.durations import UNITS, parse_duration
from eventhub_checkpoints.errors import ConfigurationError

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/times.md"


class RelativeDelta:
    """Like that of dateutil: it can be added to a time, and knows no length of its own."""

    def __radd__(self, time: datetime) -> datetime:
        return time + timedelta(seconds=5)


class Odd:
    """Can be added to a time; the difference to the sum is no duration."""

    def __radd__(self, time: datetime) -> "Odd":
        return self

    def __sub__(self, time: datetime) -> int:
        return 5


def rows_under(heading: str) -> list[list[str]]:
    """Return the cells of the rows of a table on the page."""
    table = PAGE.read_text().partition(heading)[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows]


def test_the_spellings_on_the_page_are_read_as_it_says() -> None:
    for spelling, seconds in rows_under("| spelling | seconds |"):
        assert parse_duration(spelling) == float(seconds)


def test_the_page_names_every_unit_and_no_other() -> None:
    named = {
        name.strip(" `"): float(seconds)
        for names, seconds in rows_under("| unit | seconds |")
        for name in names.split(",")
    }
    assert named == UNITS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5s", 5.0),
        ("5 s", 5.0),
        (" 5seconds ", 5.0),
        ("1500 millis", 1.5),
        ("1000 milli", 1.0),
        ("5S", 5.0),
        ("5 DAYS", 432_000.0),
        ("2.5s", 2.5),
        ("1.0000000004s", 1.0),
        ("1e9", 1e9),
        ("0s", 0.0),
        ("90", 90.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        (90, 90.0),
        (0.5, 0.5),
        ("P1DT2H3M4.5S", 93_784.5),
        ("P1WT1S", 604_801.0),
        ("P0D", 0.0),
        ("p1d", 86_400.0),
        (timedelta(seconds=2.5), 2.5),
        (RelativeDelta(), 5.0),
    ],
)
def test_a_duration_is_read(value: object, seconds: float) -> None:
    assert parse_duration(value, least=0) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", "s", "-5s", "5 weeks", "5s5s", "1e3s", "\u0665s", ".5s", "5.s", "5 s s", "a minute"),
        *("P", "PT", "P1DT", "1DT", "P1Y", "P1M", "PT1.5H", "-P1D", "P1D2H"),
        *(
            "nan",
            "inf",
            "-1",
            "9" * 400,
            "9" * 400 + "s",
            10**400,
            True,
            None,
            timedelta.max,
            Odd(),
        ),
        *("P36600D", "1e10"),
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^the duration is .*; expected seconds, or"):
        parse_duration(value, least=0)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (
            "a minute",
            {},
            "pause is 'a minute'; expected seconds, or a duration such as 30s, 0.5m or PT30S, from "
            "0.001s to 1e+09s",
        ),
        (
            "61s",
            {"least": 1, "most": 60},
            "pause is '61s'; expected seconds, or a duration such as 30s, 0.5m or PT30S, from 1s "
            "to 60s",
        ),
        (
            "5",
            {"needs_unit": True},
            "pause is '5'; expected a duration with its unit, such as 30s, 0.5m or PT30S, from "
            "0.001s to 1e+09s",
        ),
        (
            {"token": "S3CR3T"},
            {},
            "pause is of type dict; expected seconds, or a duration such as 30s, 0.5m or PT30S, "
            "from 0.001s to 1e+09s",
        ),
    ],
)
def test_the_error_says_what_is_expected(
    value: object, limits: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as failure:
        parse_duration(value, "pause", **limits)
    assert str(failure.value) == message


@pytest.mark.parametrize("value", ["5", 5, 0.5, "1e3"])
def test_a_plain_number_is_refused_where_others_read_milliseconds(value: object) -> None:
    with pytest.raises(ConfigurationError, match="with its unit"):
        parse_duration(value, needs_unit=True)
