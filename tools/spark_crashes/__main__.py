"""Kill drivers of streaming queries at every stage, and report what happened to the events.

    python -m spark_crashes --rounds 3
    python -m spark_crashes --stage "in the sink" --backend postgres
    python -m spark_crashes --seed 7 --rounds 1      repeat a round that has failed

Run it with PYTHONPATH=src:tools. Each round has a query for every cell of the matrix (a stage, a
route, and whether Spark's checkpoint is kept), all in one driver, which is killed with SIGKILL when
each of them waits at its stage. A second driver continues and reads to the end. The seed decides by
which path a query receives, in which batch it dies, and when how many events are published; round n
of seed s is that of seed s + n.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence

from backends import BACKENDS, Backend, ServerMissingError
from eventhub_checkpoints.cli.demo.children import ChildError
from spark_crashes.cells import ALL, STAGES, Cell
from spark_crashes.judge import Outcome
from spark_crashes.rounds import run_round

COLUMNS = ("rounds", "events", "lost", "doubled", "batches at most")


def outcomes_of(
    cells: Sequence[Cell], seed: int, rounds: int, backend: Backend
) -> Iterator[Outcome]:
    """Run the rounds, and yield the outcomes."""
    with backend:
        for number in range(seed, seed + rounds):
            began = time.monotonic()
            outcomes = run_round(cells, number, backend)
            wrong = sum(bool(one.problems) for one in outcomes)
            seconds = time.monotonic() - began
            print(f"seed {number}: {wrong} of {len(outcomes)} queries went wrong, {seconds:.0f} s")
            yield from outcomes


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a row for each cell."""
    cells = dict.fromkeys(one.cell for one in outcomes)
    heads = ("killed", "positions by", "checkpoint", *COLUMNS)
    rows = [row(cell, [one for one in outcomes if one.cell == cell]) for cell in cells]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(one, widths, strict=True)).rstrip()
        for one in (heads, *rows)
    )


def row(cell: Cell, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the sums of one cell, and the most batches that one kill has doubled."""
    sums = [
        len(outcomes),
        *(sum(getattr(one, name) for one in outcomes) for name in ("events", "lost", "doubled")),
        max(one.batches for one in outcomes),
    ]
    return (cell.stage, cell.route, cell.checkpoint, *map(str, sums))


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stage", choices=STAGES, help="only this one")
    parser.add_argument("--backend", choices=("sqlite", "postgres"), default="sqlite")
    chosen = parser.parse_args(arguments)
    print(f"spark_crashes: seed {chosen.seed}, {chosen.rounds} rounds", flush=True)
    cells = [cell for cell in ALL if chosen.stage in (None, cell.stage)]
    try:
        outcomes = list(outcomes_of(cells, chosen.seed, chosen.rounds, BACKENDS[chosen.backend]()))
    except (ChildError, ServerMissingError) as error:
        print(error)
        return 1
    print(table(outcomes))
    problems = [problem for one in outcomes for problem in one.problems]
    print("\n".join(problems) or "nothing was lost, and no more doubled than may be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
