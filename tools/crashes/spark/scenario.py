"""Kill drivers of streaming queries at every stage.

A round has a query for every cell of the matrix (a stage, a route, and whether Spark's checkpoint
is kept), all in one driver, which is killed with SIGKILL when each of them waits at its stage. A
second driver continues and reads to the end. The seed decides by which path a query receives, in
which batch it dies, and when how many events are published.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

from backends import BACKENDS
from crashes.harness import Result, seeds_of, table, told
from crashes.spark.cells import ALL, STAGES, Cell
from crashes.spark.judge import Outcome
from crashes.spark.rounds import run_round

ROUNDS = 3
HEAD = (
    *("killed", "positions by", "checkpoint"),
    *("rounds", "events", "lost", "doubled", "batches at most"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this scenario has."""
    parser.add_argument("--stage", choices=STAGES, help="only this one")
    parser.add_argument("--backend", choices=("sqlite", "postgres"), default="sqlite")


def results(chosen: argparse.Namespace, command: str) -> Iterator[Result]:
    """Run the chosen rounds, and yield their results."""
    cells = [cell for cell in ALL if chosen.stage in (None, cell.stage)]
    with BACKENDS[chosen.backend]() as backend:
        for seed in seeds_of(chosen):
            yield told(command, seed, partial(run_round, cells, seed, [backend]))


def report(results: Sequence[Result]) -> str:
    """Return a table with a row for each cell."""
    outcomes: list[Outcome] = [one for result in results for one in result.details or ()]
    cells = dict.fromkeys(one.cell for one in outcomes)
    rows = [row(cell, [one for one in outcomes if one.cell == cell]) for cell in cells]
    return table([HEAD, *rows])


def row(cell: Cell, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the sums of one cell, and the most batches that one kill has doubled."""
    sums = [
        len(outcomes),
        *(sum(getattr(one, name) for one in outcomes) for name in ("events", "lost", "doubled")),
        max(one.batches for one in outcomes),
    ]
    return (cell.stage, cell.route, cell.checkpoint, *map(str, sums))
