"""Measure, print the table, and write the JSON file."""

import argparse
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from benchmarks.batches import BATCH, QUICK_BATCH
from benchmarks.cases import CASES
from benchmarks.report import Result, show, wide_console, write

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 5


def arguments() -> argparse.Namespace:
    """What the caller asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small rounds; figures to be doubted")
    parser.add_argument("--json", type=Path, metavar="PATH", help="the file to write")
    parser.add_argument(
        "--only",
        action="append",
        choices=CASES,
        metavar="NAME",
        help=f"one case, may be repeated: {', '.join(CASES)}",
    )
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error("--rounds is at least 1")
    return asked


def measured(name: str, rounds: int, quick: bool) -> Result:
    """So many rounds of one case."""
    entry = CASES[name]
    with closing(entry.case(quick)) as case:
        return Result(name, entry, list(islice(case, rounds)))


def main() -> None:
    """Measure what was asked for."""
    asked = arguments()
    console = wide_console()
    results = []
    for name in CASES if asked.only is None else asked.only:
        console.print(f"measuring {name}, {asked.rounds} rounds")
        results.append(measured(name, asked.rounds, asked.quick))
    show(results, console)
    if asked.quick:
        console.print(f"quick: {QUICK_BATCH} partitions in the place of {BATCH}")
    path = asked.json or RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    write(results, asked.quick, path)
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
