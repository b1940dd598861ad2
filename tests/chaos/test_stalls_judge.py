"""What `python -m crashes stalls` counts as found, missed and imagined."""

import pytest

from crashes.harness import Result
from crashes.stalls import Outcome, report


def outcome(cause: str, *found: str, healed: bool | None = None) -> Outcome:
    return Outcome(cause, "aio", "Checkpointer", list(found), 2.0 if found else None, healed)


@pytest.mark.parametrize(
    ("each", "problems"),
    [
        (outcome("mute link", "link", healed=True), []),
        (outcome("task lost", "link"), []),
        (outcome("idle hub"), []),
        (outcome("mute link", "hub", healed=True), ["found at ['hub'], expected at ['link']"]),
        (outcome("hub away"), ["found at [], expected at ['hub']"]),
        (outcome("hub away", "hub", healed=False), ["it has not gone on"]),
        (outcome("drain", "handler"), ["found at ['handler'], expected at []"]),
    ],
)
def test_a_stall_that_is_missed_imagined_or_not_healed_is_told(
    each: Outcome, problems: list[str]
) -> None:
    assert each.problems == [f"{each.cause}, aio Checkpointer: {problem}" for problem in problems]


def test_the_report_has_a_row_for_each_cause_and_for_each_calm_round() -> None:
    outcomes = [
        outcome("hub away", "hub", healed=True),
        outcome("hub away", "link", healed=False),
        outcome("hub away"),
        outcome("drain", "handler"),
    ]
    results = [Result(details=each) for each in outcomes] + [Result(problems=["it did not start"])]
    rows = [[cell.strip() for cell in line.split("|")] for line in report(results).splitlines()]
    cells = {row[1]: row[2:-1] for row in rows if len(row) > 2}
    assert cells["hub away"] == ["3", "1", "1", "1", "1 of 2", "2.00 (2.00)"]
    assert cells["task lost"] == ["0", "0", "0", "0", "ended", ""]
    assert cells["drain"] == ["1", "1"]
    assert cells["start"] == ["0", "0"]
