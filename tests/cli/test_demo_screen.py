"""What the demo prints, on a terminal of 80 columns and into a pipe, and what it asks for."""

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from eventhub_checkpoints.cli.demo import command, report
from eventhub_checkpoints.cli.demo.command import (
    INTRODUCTION,
    CannotBeginError,
    check_requirements,
)
from eventhub_checkpoints.cli.demo.report import PartitionOutcome, PartitionRow, Screen
from eventhub_checkpoints.cli.demo.story import result, suggest
from eventhub_checkpoints.errors import MissingDriverError

OUTCOMES = [
    PartitionOutcome(
        partition=str(number),
        sent=500,
        published=range(500),
        processed=[*range(400), *range(380, 400)],
        saved=399,
        checkpoint=399,
        read_by_spark=range(400, 500),
        checkpoint_of_spark=499,
        read_after_spark=[],
    )
    for number in range(12)
]
ROWS = [PartitionRow(str(number), "AB"[number % 2], 300, 250, 199) for number in range(12)]
COLOR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Clock:
    """The clock of a screen, which stands still unless it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(report, "time", clock)
    return clock


def printed(act: Callable[[Screen], object], terminal: bool = False) -> str:
    """What a screen prints, as a terminal of 80 columns or a pipe gets it."""
    file = io.StringIO()
    console = Console(file=file, highlight=False, force_terminal=terminal, width=80)
    with Screen(console, of_partition=500) as screen:
        act(screen)
    return file.getvalue()


def whole(screen: Screen) -> None:
    screen.note(INTRODUCTION)
    screen.step("A and B share the partitions: 0, 2, 4, 6, 8, 10 and 1, 3, 5, 7, 9, 11")
    screen.show(ROWS)
    screen.show(ROWS, "PySpark: Java and Spark start")
    assert result(screen, OUTCOMES) == 0
    suggest(screen)


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_wider_than_80_columns_or_cut_off(terminal: bool) -> None:
    # What moves the cursor begins a line.
    lines = CONTROL.sub("\n", COLOR.sub("", printed(whole, terminal))).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 80] == []
    assert not any("\N{HORIZONTAL ELLIPSIS}" in line for line in lines)


def test_a_pipe_gets_no_control_characters_and_no_other_sign_than_ascii() -> None:
    text = printed(whole)
    assert text.isascii()
    assert not CONTROL.search(text)
    assert "\n  0.0 s  PySpark: Java and Spark start\n" in text


def test_it_ends_with_a_verdict_of_one_line_then_the_table_then_what_to_try() -> None:
    text = printed(whole)
    verdict = "Nothing was lost. 240 of 6000 events were processed twice; Spark read its 1200."
    table = "partition  sent  processed  twice  lost"
    order = [text.index(f"\n{words}") for words in (verdict, table, "What to try next:\n")]
    assert order == sorted(order)
    assert re.search(r"\n +all +6000 +4800 +240 +0 +1200 *\n", text)


def test_a_failed_demo_says_so_in_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lost = [*OUTCOMES[1:], OUTCOMES[0].__class__("0", 1, range(1), [], None, None, [0], 0, [0])]
    text = printed(lambda screen: result(screen, lost))
    assert "\nThe demo has failed: 1 promise is broken.\n" in text
    assert "a consumer after Spark received: 0" in capsys.readouterr().err


def test_a_terminal_shows_that_something_long_is_alive(clock: Clock) -> None:
    def wait(screen: Screen) -> None:
        for clock.now in (0.0, 7.0):
            screen.show(ROWS, "PySpark: Java and Spark start")

    text = CONTROL.sub("", printed(wait, terminal=True))
    assert "PySpark: Java and Spark start, for 0 s" in text
    assert "PySpark: Java and Spark start, for 7 s" in text


def test_a_pipe_gets_a_line_every_ten_seconds(clock: Clock) -> None:
    def wait(screen: Screen) -> None:
        for clock.now in map(float, range(36)):
            screen.show(ROWS, "PySpark: Java and Spark start" if clock.now < 25 else "")

    assert printed(wait).splitlines() == [
        "  0.0 s  PySpark: Java and Spark start",
        " 10.0 s  PySpark: Java and Spark start, for 10 s",
        " 20.0 s  PySpark: Java and Spark start, for 20 s",
        " 25.0 s  published 3600, processed 3000; A holds 0 2 4 6 8 10; B holds 1 3 5 7 9 11",
    ]


def test_a_bar_has_what_is_saved_processed_and_sent() -> None:
    row = PartitionRow("0", "A", published=100, processed=60, checkpoint=19)
    bar = report._bar(row, 100, "-")
    parts = [(str(span.style), span.end - span.start) for span in bar.spans]
    assert parts == [("green", 4), ("yellow", 9), ("bright_black", 9)]
    assert len(bar.plain) == report.BAR_WIDTH


@pytest.mark.parametrize(
    ("store", "missing", "asked"),
    [
        (None, ("pyspark", "aiosqlite"), "[spark,sql]' (about 510 MB to download)"),
        (None, ("sqlalchemy",), "[sql]'"),
        ("postgresql://host/db", ("pyarrow", "psycopg"), "[spark,postgres]' (about"),
    ],
)
def test_all_that_is_missing_is_asked_for_at_once(
    store: str | None, missing: tuple[str, ...], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_store(url: str) -> None:
        raise MissingDriverError.of_extra(url, "postgres" if "postgresql" in url else "sql")

    monkeypatch.setattr(command, "is_installed", lambda module: module not in missing)
    monkeypatch.setattr("eventhub_checkpoints.open_store", open_store)
    with pytest.raises(CannotBeginError) as refused:
        check_requirements(store, "aio")
    assert asked in str(refused.value)
    assert "the driver of the store" in str(refused.value)


def test_another_fault_of_a_store_is_left_to_the_demo_itself() -> None:
    assert command.missing_extra("postgresql://host/db?nonsense=1", "aio") is None
    assert command.missing_extra("my_package:factory", "aio") is None
    assert command.missing_extra("sqlite:///checkpoints.db", "aio") is None
