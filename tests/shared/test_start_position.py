"""Where a stream starts: the eight rows, each with and without `from_saved`."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from eventhub_checkpoints._shared.offset_words import START_OF_STREAM
from eventhub_checkpoints._shared.start_position import client_position, resolve_start

START = 0
"""A start point that is false, for no test of it may be by its truth."""
SAVED = ""
PLACES = {
    "at the beginning": START_OF_STREAM,
    "at the start point": START,
    "at the saved position": SAVED,
}
NEITHER, START_GIVEN = "at the beginning", "at the start point"
FROM_SAVED = "at the saved position"

ROWS = [
    # saving is on, a start point is given, a position is saved; without and with from_saved
    (False, False, False, NEITHER, NEITHER),
    (False, False, True, NEITHER, FROM_SAVED),
    (False, True, False, START_GIVEN, START_GIVEN),
    (False, True, True, START_GIVEN, FROM_SAVED),
    (True, False, False, NEITHER, NEITHER),
    (True, False, True, NEITHER, FROM_SAVED),
    (True, True, False, START_GIVEN, START_GIVEN),
    (True, True, True, FROM_SAVED, FROM_SAVED),
]


def word(value: bool) -> str:
    return "yes" if value else "no"


@pytest.mark.parametrize(
    ("save", "has_start", "has_saved", "plain", "from_saved"),
    ROWS,
    ids=[", ".join(map(word, row[:3])) for row in ROWS],
)
def test_the_stream_starts_as_the_table_says(
    tell: Callable[[str, str], None],
    save: bool,
    has_start: bool,
    has_saved: bool,
    plain: str,
    from_saved: str,
) -> None:
    start, saved = START if has_start else None, SAVED if has_saved else None
    found = [resolve_start(save, start, saved, wanted) for wanted in (False, True)]
    assert found == [PLACES[plain], PLACES[from_saved]]
    if (save, has_start, has_saved) == (False, False, False):
        tell("start", "| saving on | start point given | position saved | the stream starts |")
    unless = plain if plain == from_saved else f"{plain}; with from_saved {from_saved}"
    tell("start", f"| {word(save):9} | {word(has_start):17} | {word(has_saved):14} | {unless} |")


def test_the_beginning_is_what_the_client_takes_for_it() -> None:
    assert START_OF_STREAM == "-1"


MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("microseconds", [0, 1, 999])
@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-3))])
def test_the_client_is_given_the_millisecond_before_a_time(
    microseconds: int, zone: timezone
) -> None:
    start = (MOMENT + timedelta(microseconds=microseconds)).astimezone(zone)
    assert client_position(start) == MOMENT - timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))]
)
def test_a_time_before_there_were_events_is_the_beginning(zone: timezone) -> None:
    assert client_position(datetime.min.replace(tzinfo=zone)) == START_OF_STREAM


def test_other_start_points_are_given_to_the_client_as_they_are() -> None:
    assert client_position(None) == START_OF_STREAM
    for start in ("-1", "@latest", "4984", 0, 7):
        assert client_position(start) is start
