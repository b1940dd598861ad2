"""What the commands have in common: their arguments, and where the figures go."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from benchmarks.measuring import Round
from benchmarks.results import Entry
from counts import at_least_one

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 5


def arguments(
    program: str,
    description: str | None,
    names: Sequence[str],
    add_own: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> argparse.Namespace:
    """What the caller asked for, of these names; `add_own` adds what one command has besides."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument(
        "--rounds", type=at_least_one, default=ROUNDS, help=f"rounds (default {ROUNDS})"
    )
    parser.add_argument("--quick", action="store_true", help="small rounds; figures to be doubted")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", default=new_file(program), help="the file to write"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=names,
        metavar="NAME",
        help=f"one of {', '.join(names)}; may be repeated",
    )
    add_own(parser)
    return parser.parse_args()


def new_file(program: str) -> Path:
    """A name that no run before has had."""
    kind = program.partition(".")[2]
    return RESULTS / f"{kind}{'-' if kind else ''}{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"


def measured(entry: Entry, rounds: int, quick: bool) -> list[Round]:
    """So many rounds of one case."""
    with closing(entry.case(quick)) as case:
        return list(islice(case, rounds))
