"""Measure, print the table, and write the JSON file."""

from benchmarks.cases import CASES
from benchmarks.command import arguments, measured
from benchmarks.operations import MANY, QUICK_MANY
from benchmarks.report import show, wide_console, write
from benchmarks.results import Result


def main() -> None:
    """Measure what was asked for."""
    asked = arguments("benchmarks", __doc__, [*CASES])
    console = wide_console()
    results = []
    for name in asked.only or CASES:
        console.print(f"measuring {name}, {asked.rounds} rounds")
        rounds = measured(CASES[name], asked.rounds, asked.quick)
        results.append(Result(name, CASES[name], rounds))
    show(results, console)
    if asked.quick:
        console.print(f"quick: {QUICK_MANY} partitions in the place of {MANY}")
    write(results, asked.quick, asked.json)
    console.print(f"written to {asked.json}")


if __name__ == "__main__":
    main()
