"""What `python -m crashes sink` expects of a pipeline, and what its judge counts."""

import pytest

from crashes.harness import Result
from crashes.sink.judge import Outcome, judged
from crashes.sink.rows import rows_of
from crashes.sink.scenario import report


def test_a_total_shows_an_event_that_is_lost_or_counted_twice():
    # The events 0 and 150 have one key, 1 and 151 another one.
    rows = rows_of("aggregated", 152, [{"0": 1, "1": 75}, {"0": 76, "1": 76}])
    assert {"train 0:1:0", "train 0:2:150", "train 1:1:1", "train 1:2:152"} <= rows
    assert len(rows) == 152
    assert "train 0:2:150" in rows_of("aggregated", 152, [{"0": 76, "1": 76}])
    assert "train 0:1:0" not in rows_of("aggregated", 152, [{"0": 76, "1": 76}])
    unread = rows_of("aggregated", 152, [{"0": 1, "1": 75}])
    assert unread == rows


NAMES = {"a:1", "b:1"}
SENT = [("a:1", "1"), ("b:1", "2")]


@pytest.mark.parametrize(
    ("sent", "deduplicated", "outcome"),
    [
        (SENT, ["a:1", "b:1"], Outcome(3, 2, 2, 0, 0, 0, 0, 0)),
        ([*SENT, SENT[0]], ["a:1", "b:1"], Outcome(3, 2, 3, 0, 1, 0, 0, 0)),
        (SENT[:1], ["a:1"], Outcome(3, 2, 1, 1, 0, 0, 0, 0)),
        ([*SENT, ("a:1", "3")], ["a:1", "b:1", "a:1"], Outcome(3, 2, 3, 0, 1, 1, 0, 0)),
        (SENT, ["a:1"], Outcome(3, 2, 2, 0, 0, 0, 1, 0)),
        ([*SENT, ("a:2", "3")], ["a:1", "b:1", "a:2"], Outcome(3, 2, 3, 0, 0, 0, 0, 1)),
        ([("a:1", "1"), ("b:1", "1")], ["a:1", "b:1"], Outcome(3, 2, 2, 0, 0, 0, 0, 1)),
    ],
)
def test_the_judge_counts_what_is_lost_and_what_is_there_twice(sent, deduplicated, outcome):
    assert judged(3, NAMES, sent, deduplicated) == outcome
    assert len(outcome.problems) == outcome.lost + outcome.kept + outcome.dropped + outcome.wrong


def test_the_report_has_a_row_for_each_round():
    results = [Result(details=Outcome(9, 8, 10, 1, 2, 3, 4, 5), seed=7), Result(problems=["ended"])]
    lines = report(results).splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == [
        *("7", "9", "8", "10", "1", "2", "3", "4", "5")
    ]
    assert len(lines) == 3
