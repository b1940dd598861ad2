"""What was measured of reads, held against what it has to reach, as tables and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.report import times

Figures = Mapping[str, float]
"""One side's, by measure."""
UNITS = {
    "rate": "{:,.0f} /s",
    "task": "{:,.0f} /s",
    "core": "{:,.0f} /s",
    "cpu": "{:.1f} us",
    "server": "{:.0%}",
    "memory": "{:.0f} MiB",
    "trigger": "{:.2f} s",
    "plan": "{:.2f} s",
    "work": "{:.2f} s",
    "latest": "{:,.0f} ms",
    "micro-batch": "{:,.0f} ms",
    "connections": "{:.1f}",
    "questions": "{:.1f}",
    "event": "{:,.0f} ns",
    "layer": "{:+.1%}",
    "writes": "{:.4g}",
    "median": "{:.1f} ms",
    "p99": "{:.1f} ms",
}
"""How each measure is written."""


@dataclass(frozen=True)
class Reach:
    """How the first side has to stand to another.

    Attributes:
        least, most: the ratio, one of them.
    """

    measure: str
    other: str
    least: float = 0.0
    most: float = float("inf")

    def __str__(self) -> str:
        if self.least:
            return f"at least {self.least:g} x {self.other}"
        return f"at most {self.most:g} x {self.other}"

    def holds(self, ratio: float) -> bool:
        """Whether it is reached."""
        return self.least <= ratio <= self.most


@dataclass(frozen=True)
class Row:
    """All rounds of one comparison.

    Attributes:
        sides: by the names of the columns; the first is held against each of the others.
        measures: those that say something here.
        rounds: the figures by side.
    """

    name: str
    title: str
    sides: Sequence[str]
    measures: Sequence[str]
    rounds: Sequence[Mapping[str, Figures]]
    reach: Sequence[Reach] = ()

    def values(self, side: str, measure: str) -> list[float]:
        """One for each round; empty where this was not measured."""
        found = (each[side].get(measure) for each in self.rounds if side in each)
        return [value for value in found if value is not None]

    def ratio(self, other: str, measure: str) -> float | None:
        """The first side divided by another: the median of the rounds' ratios."""
        ours, theirs = self.values(self.sides[0], measure), self.values(other, measure)
        if not theirs or not all(theirs):
            return None
        return median(a / b for a, b in zip(ours, theirs, strict=True))

    def reached(self, measure: str) -> list[tuple[str, bool]]:
        """What there is to reach in a measure, and whether it was."""
        return [
            (str(one), one.holds(ratio))
            for one in self.reach
            if one.measure == measure and (ratio := self.ratio(one.other, measure)) is not None
        ]

    def as_dict(self) -> dict[str, Any]:
        """For the JSON file; seconds, events per second, shares of 1; `cpu` in microseconds."""
        return {
            "name": self.name,
            "title": self.title,
            "measures": {measure: self._measure(measure) for measure in self.measures},
        }

    def _measure(self, measure: str) -> dict[str, Any]:
        measured = [side for side in self.sides if self.values(side, measure)]
        return {
            "rounds": {side: self.values(side, measure) for side in measured},
            "median": {side: median(self.values(side, measure)) for side in measured},
            "ratio": {side: self.ratio(side, measure) for side in measured[1:]},
            "targets": [
                {"target": text, "reached": holds} for text, holds in self.reached(measure)
            ],
        }


def show(title: str, rows: Sequence[Row], console: Console, heading: str = "read") -> None:
    """Print rows that have the same sides as a table."""
    first, *others = rows[0].sides
    table = Table(title=f"{title}: median of the rounds")
    table.add_column(heading)
    for column in ("measure", first, *others, *(f"{first} / {one}" for one in others)):
        table.add_column(column, justify="right")
    table.add_column("target")
    table.add_column("reached")
    for row in rows:
        named = row.title
        for measure in row.measures:
            reached = row.reached(measure)
            table.add_row(
                named,
                measure,
                *(spelled(row.values(side, measure), measure) for side in row.sides),
                *(times(row.ratio(side, measure)) for side in others),
                "\n".join(text for text, _ in reached),
                "\n".join("yes" if holds else "NO" for _, holds in reached),
            )
            named = ""
        table.add_section()
    console.print(table)


def spelled(values: Sequence[float], measure: str) -> str:
    """The median with its unit."""
    return UNITS[measure].format(median(values)) if values else ""
