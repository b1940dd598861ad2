"""Count in a source tree what is decided, parsed, named or held in more than one place.

    PYTHONPATH=tools python -m source_report              of this checkout
    PYTHONPATH=tools python -m source_report --at PATH    of another one, to compare the two
    PYTHONPATH=tools python -m source_report --where      with the places of all that is counted

Files in `_sync` that are derived repeat their source in `_async`: their lines are counted apart,
and nothing else in them is counted.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from source_report.rules import (
    Values,
    constants,
    functions_where,
    lines_by_room,
    parses_connection_string,
    parses_duration,
    parses_time,
    parses_url,
    private_names,
    raises_lines,
    retry_loops,
    spaces,
    types_named,
    uses_of_any,
)
from source_report.tree import Package

BASE = "BaseCheckpointStore"
SHARED_NAMES = ("Position", "Target", "Plan", "Ownership", "Group")
"""Names that a type of one room has, and a type with another meaning in another room."""


class Row(NamedTuple):
    """One line of the report: what is counted, how often, and the places."""

    what: str
    number: int
    places: list[str]


def rows(package: Package) -> Iterator[Row]:
    """Count everything but the lines."""
    stores = package.stores()
    for name, order in sorted(stores.items()):
        yield Row(f"classes in the MRO of {name}", len(order), order)
    private = sorted(private_names(package, stores.get(BASE, ())))
    yield Row(f"private names of {BASE}", len(private), private)
    loops = list(retry_loops(package))
    yield Row("retry loops", len(loops), loops)
    for what, rule in (
        ("functions that space retries", lambda module: spaces),
        ("parsers of times", lambda module: parses_time),
        ("parsers of durations", parses_duration),
        ("parsers of URLs", lambda module: parses_url),
        ("parsers of connection strings", lambda module: parses_connection_string),
    ):
        places = functions_where(package, rule)
        yield Row(what, len(places), places)
    named = types_named(package, SHARED_NAMES)
    yield Row(f"types called {', '.join(SHARED_NAMES)}", len(named), named)
    for what, table in zip(
        ("constants of one name with several values", "constants of one meaning with two values"),
        constants(package),
        strict=True,
    ):
        yield Row(what, len(table), [f"{name}: {shown(table[name])}" for name in sorted(table)])
    for what, counts in (
        ("uses of Any in operations", uses_of_any(package, "operations")),
        ("lines of Raises: sections", raises_lines(package)),
    ):
        yield Row(what, counts.total(), [f"{name}: {number}" for name, number in counts.items()])
    for what, at_run_time in (("at run time", True), ("drawn, lazy and for types too", False)):
        circles = package.circles(at_run_time=at_run_time)
        yield Row(f"circles of imports {what}", len(circles), [", ".join(each) for each in circles])


def shown(values: Values) -> str:
    """Return values with their modules."""
    return "; ".join(f"{value} ({', '.join(modules)})" for value, modules in values.items())


def report(package: Package, *, with_places: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"{'lines by room':<24}{'files':>8}{'code':>8}{'docs':>8}{'comments':>10}"
    for room, lines in lines_by_room(package).items():
        yield f"{room:<24}{lines.files:>8}{lines.code:>8}{lines.docstrings:>8}{lines.comments:>10}"
    yield ""
    for row in rows(package):
        yield f"{row.number:>6}  {row.what}"
        if with_places:
            yield from (f"{'':10}{place}" for place in row.places)


def main() -> None:
    """Print the report of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).resolve().parents[2]
    parser.add_argument("--at", type=Path, default=here, help="the checkout; this one by default")
    parser.add_argument("--where", action="store_true", help="print places, too")
    options = parser.parse_args()
    for line in report(Package(options.at), with_places=options.where):
        print(line)


if __name__ == "__main__":
    main()
