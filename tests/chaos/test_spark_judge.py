"""What `python -m crashes spark` kills, and what its judge lets a query double."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from crashes.harness import Result
from crashes.spark.cells import CHECKPOINTS, FEW, ROUTES, STAGES, Cell
from crashes.spark.judge import Found, Outcome, Written, judged
from crashes.spark.scenario import report

KEPT = Cell("in the sink", "publisher", "kept")
DELETED = Cell("in the sink", "publisher", "deleted")
FLUSHED = Cell("in the sink", "flushed publisher", "deleted")
EXACT = Cell("in the sink", "exactly once", "kept")


def test_the_short_run_has_every_stage_and_every_route_with_either_checkpoint() -> None:
    assert {cell.stage for cell in FEW} == set(STAGES)
    met = Counter((cell.route, cell.checkpoint) for cell in FEW)
    assert met == {(route, checkpoint): 1 for route in ROUTES for checkpoint in CHECKPOINTS}


def rows(attempt: int, *batches: range) -> list[Written]:
    """Events of partition 0, by batch."""
    return [
        Written("0", number, attempt, batch)
        for batch, numbers in enumerate(batches)
        for number in numbers
    ]


def outcome_of(
    cell: Cell,
    killed: Sequence[Written],
    again: Sequence[Written],
    *,
    stored: Mapping[str, int],
    begin: Mapping[str, int],
    end: int = 9,
) -> Outcome:
    """An outcome where ten events were published."""
    before, after = Found(killed, stored), Found([*killed, *again], {"0": end})
    return judged(cell, before, begin, after, {"0": 9})


@pytest.mark.parametrize(
    ("cell", "begin", "again", "doubled", "batches"),
    [
        (KEPT, 5, range(6, 10), 0, 0),
        (KEPT, 2, range(3, 10), 3, 1),
        (DELETED, -1, range(10), 6, 2),
        (FLUSHED, 2, range(3, 10), 3, 1),
        (EXACT, 2, range(6, 10), 0, 0),
    ],
)
def test_what_may_be_doubled_is_counted_and_let_be(
    cell: Cell, begin: int, again: range, doubled: int, batches: int
) -> None:
    killed = rows(0, range(3), range(3, 6))
    outcome = outcome_of(cell, killed, rows(1, again), stored={"0": 2}, begin={"0": begin})
    assert outcome == Outcome(cell, 10, 0, doubled, batches, [])


@pytest.mark.parametrize(
    ("cell", "again", "stored", "end", "problem"),
    [
        (EXACT, range(7, 10), 5, 9, "1 events are lost"),
        (EXACT, range(6, 11), 5, 9, "1 events were never published"),
        (EXACT, range(5, 10), 5, 9, "other events are doubled than those behind the begin"),
        (EXACT, range(6, 10), 6, 9, "a position has passed the results"),
        (EXACT, range(6, 10), 5, 8, "the positions are {'0': 8}, the hub ends at {'0': 9}"),
        (KEPT, range(10), 5, 9, "2 batches are doubled"),
        (FLUSHED, range(10), 5, 9, "2 batches are doubled"),
    ],
)
def test_what_may_not_be_is_told(
    cell: Cell, again: range, stored: int, end: int, problem: str
) -> None:
    killed = rows(0, range(3), range(3, 6))
    begin = {"0": again.start - 1}
    outcome = outcome_of(cell, killed, rows(1, again), stored={"0": stored}, begin=begin, end=end)
    assert outcome.problems == [f"{cell}: {problem}"]


def test_an_event_that_comes_three_times_is_told() -> None:
    killed = rows(0, range(6), range(5, 6))
    outcome = outcome_of(KEPT, killed, rows(1, range(5, 10)), stored={"0": 4}, begin={"0": 4})
    assert f"{KEPT}: an event is there three times" in outcome.problems


def test_the_report_has_a_row_for_each_cell() -> None:
    results = [Result(details=[Outcome(EXACT, 100, 0, n, n % 2, [])]) for n in (7, 8)]
    lines = report([*results, Result(problems=["a driver has ended"])]).splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == [
        *("in the sink", "exactly once", "kept"),
        *("2", "200", "0", "15", "1"),
    ]
    assert len(lines) == 3
