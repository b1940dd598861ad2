"""Times in every spelling that options, the command line and stored dead letters have."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventhub_checkpoints._shared.times import parse_time, time_or_duration
from eventhub_checkpoints.errors import ConfigurationError
from waiting import LIMIT

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/times.md"


def test_the_spellings_on_the_page_are_read_as_it_says() -> None:
    table = PAGE.read_text().partition("| spelling | the same time in UTC |")[2]
    rows = [line for line in table.partition("\n\n")[0].splitlines() if line.startswith("| `")]
    assert rows
    for row in rows:
        spelling, meaning = (cell.strip(" `") for cell in row.strip("|").split("|"))
        assert parse_time(spelling).isoformat() == meaning


def test_a_time_is_returned_in_utc() -> None:
    moment = parse_time(" 2026-11-21T10:00:00.250+01:00\n")
    assert moment == datetime(2026, 11, 21, 9, 0, 0, 250_000, UTC)
    assert moment.tzinfo is UTC


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put this machine into another time zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_time_without_an_offset_is_utc_wherever_the_machine_is() -> None:
    assert parse_time("2026-11-21T10:00") == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_an_error_without_a_name_is_that_of_a_time() -> None:
    with pytest.raises(ConfigurationError, match=r"^the time is 'noon'; expected a time in ISO"):
        parse_time("noon")


@pytest.mark.parametrize(
    "text", ["", "noon", "10:00", "2026-13-01", "1795244369", "0001-01-01T00:00+01:00", None, 5]
)
def test_anything_else_is_refused_with_what_is_expected(text: object) -> None:
    with pytest.raises(ConfigurationError) as failure:
        parse_time(text, "--at")
    assert str(failure.value) == (
        f"--at is {text!r}; expected a time in ISO 8601, such as 2026-11-21T10:00 (UTC) or "
        "2026-11-21T10:00:00.250+01:00"
    )


def test_a_time_is_named_by_itself_or_before_now() -> None:
    assert time_or_duration("2026-11-23T10:00") == datetime(2026, 11, 23, 10, tzinfo=UTC)
    named = time_or_duration("2h")
    assert timedelta(0) <= datetime.now(UTC) - named - timedelta(hours=2) < timedelta(seconds=LIMIT)
    with pytest.raises(ConfigurationError, match="expected a time"):
        time_or_duration("yesterday")


@pytest.mark.parametrize("text", ["yesterday", "15", "9999999999d"])
def test_a_start_that_is_neither_is_refused_with_every_spelling(text: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        time_or_duration(text, "since")
    said = str(failure.value)
    assert said.startswith(f"since is {text!r}; expected a time in ISO 8601, such as 2026-11-21T")
    assert said.endswith(
        ", or a duration with its unit, such as 30s, 0.5m or PT30S, from 0s to 1e+09s"
    )
