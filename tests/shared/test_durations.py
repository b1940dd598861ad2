"""Durations in every spelling of HOCON that matters here."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from eventhub_checkpoints._shared.configuration_tables import SECONDS, seconds_of

PAGE = Path(__file__).resolve().parents[2] / "docs/configuration.md"


class RelativeDelta:
    """Like that of dateutil: it can be added to a time, and knows no length of its own."""

    def __radd__(self, time: datetime) -> datetime:
        return time + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("5 s", 5.0),
        (" 5seconds ", 5.0),
        ("1 second", 1.0),
        ("5000ms", 5.0),
        ("1500 millis", 1.5),
        ("1 milli", 0.001),
        ("2 milliseconds", 0.002),
        ("1 millisecond", 0.001),
        ("1m", 60.0),
        ("1 min", 60.0),
        ("1 minute", 60.0),
        ("2 minutes", 120.0),
        ("2.5s", 2.5),
        ("0s", 0.0),
        (timedelta(seconds=2.5), 2.5),
        (RelativeDelta(), 5.0),
    ],
)
def test_a_duration_is_read(text: object, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "s",
        "-5s",
        "5S",
        "5 d",
        "5 days",
        "5s5s",
        "1e3s",
        "\u0665s",
        ".5s",
        "5.s",
        "5 s s",
        5,
        None,
        timedelta.max,
    ],
)
def test_anything_else_is_none(text: object) -> None:
    assert seconds_of(text) is None


def test_the_page_names_every_unit_and_no_other() -> None:
    table = PAGE.read_text().partition("| unit |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    named = {word.strip(" `") for row in rows for word in row.split("|")[1].split(",")}
    assert named == {*SECONDS}
